"""Jobs on several machines: their launchers meet, share ranks and certificates, and end together."""
