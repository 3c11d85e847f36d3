"""Records for other programs: metrics for Prometheus, spans for OpenTelemetry. Imported when a program asks for them."""
