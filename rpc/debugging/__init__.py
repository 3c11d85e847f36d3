"""Debugger: threads of workers that are held at a prompt of pdb, and the commands that they are given."""
