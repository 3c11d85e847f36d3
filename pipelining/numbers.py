"""Numbers of the methods of pipelines. Those from 64 to 79 are this package's."""


class PipelineMethod:
    """Method numbers: what a request asks for."""

    DELIVER = 64
