"""Random expressions split over workers: their gradients must equal those of the same expressions in one process."""
