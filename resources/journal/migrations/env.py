"""Alembic's entry: runs the migrations on the connection that `resources.journal.migration` hands over."""

from __future__ import annotations

from alembic import context

from resources.journal.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
