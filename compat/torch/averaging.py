"""Averaged models and the schedule for them, which PyTorch has in one module (``torch.optim.swa_utils``)."""

from ...nn import utils
from ...optim import lr_scheduler

AveragedModel = utils.AveragedModel
SWALR = lr_scheduler.SWALR
get_ema_avg_fn = utils.get_ema_avg_fn
get_ema_multi_avg_fn = utils.get_ema_multi_avg_fn
get_swa_avg_fn = utils.get_swa_avg_fn
get_swa_multi_avg_fn = utils.get_swa_multi_avg_fn
update_bn = utils.update_bn
