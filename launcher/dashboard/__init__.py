"""Page in the browser that shows a running job (extra ``dashboard``)."""
