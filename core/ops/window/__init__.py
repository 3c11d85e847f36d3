"""Operations of a window that slides over an image: convolution, pooling, unfolding; and resizing by interpolation.

``window.py`` tells where a window stops and what it sees. Each operation is a linear map over that, and its gradient the
adjoint of the map.
"""
