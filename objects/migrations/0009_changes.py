"""Committed changes of objects. ``objects/changes/capture.py`` installs what captures them.

The tables are unlogged. Nothing in them is worth a write to the log: who has missed something finds
its row of ``objects_interest`` gone, and reads anew.
"""

from django.db import migrations

TABLES = """
CREATE UNLOGGED TABLE objects_interest (
    class_name text PRIMARY KEY,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    -- A reader sleeps, and wants to be told when the class changes.
    asleep boolean NOT NULL DEFAULT false
);

CREATE UNLOGGED TABLE objects_change (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    class_id bigint,
    class_name text,
    object_id text NOT NULL,
    before jsonb,
    after jsonb,
    size integer NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- They are read once or twice; compressing them would take longer than writing them.
ALTER TABLE objects_change
    ALTER before SET STORAGE EXTERNAL,
    ALTER after SET STORAGE EXTERNAL;
CREATE INDEX objects_change_place ON objects_change (txid, seq);

CREATE UNLOGGED TABLE objects_change_trim (
    id smallint PRIMARY KEY,
    generation bigint NOT NULL,
    mark pg_snapshot NOT NULL,
    marked_at timestamptz NOT NULL
);
"""

# The functions take their triggers along.
UNDO = """
DROP FUNCTION IF EXISTS objects_change_of_row() CASCADE;
DROP FUNCTION IF EXISTS objects_change_of_statement() CASCADE;
DROP TABLE objects_change_trim;
DROP TABLE objects_change;
DROP TABLE objects_interest;
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0008_passkey_cascade")]

    operations = [migrations.RunSQL(TABLES, UNDO)]
