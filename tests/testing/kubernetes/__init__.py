"""Manifests and charts, and the definitions that they are checked against."""
