"""Two small models that PyTorch and Telegrad build alike, from the ``nn`` of either: their checkpoints fit both."""


def residual_network(nn):
    """Return a ResNet with two blocks for images ``(N, 3, 8, 8)``; 5 classes."""

    class Block(nn.Module):
        def __init__(self, wide, wider, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(wide, wider, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(wider)
            self.relu = nn.ReLU()
            self.conv2 = nn.Conv2d(wider, wider, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(wider)
            self.downsample = nn.Sequential(nn.Conv2d(wide, wider, 1, stride, bias=False), nn.BatchNorm2d(wider))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.downsample(x))

    stem = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return nn.Sequential(stem, Block(4, 4, 1), Block(4, 8, 2), head)


def transformer(nn):
    """Return a transformer for sequences ``(S, N, 8)`` and ``(T, N, 8)``."""
    return nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=12, dropout=0.0)
