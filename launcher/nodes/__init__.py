"""Jobs on several machines: their launchers join a rendezvous, share ranks and certificates, and end together."""
