"""Steps of distributed autograd that are recorded once and replayed, at both ends (``tg.compile``)."""
