"""Fingerprints and duplicate relations in SQL: the only users of SQLAlchemy and Alembic."""
