-- The capture of changes: what PostgreSQL writes to objects_change with every write of an object
-- whose class a reader wants (objects_interest). The reader is objects.changes.reader.
--
-- capture.install installs the functions whenever this file has changed.
--
-- Each statement of a trigger's function has a snapshot of its own, so interest and sleep count from
-- the moment that they are committed, also in transactions that began before. Every write of one
-- object waits for the first statement: a join or another statement in it costs as much as the rest.

CREATE OR REPLACE FUNCTION objects_change_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
    after jsonb;
    tells boolean;
BEGIN
    SELECT i.asleep INTO tells FROM objects_interest i
    WHERE i.until > statement_timestamp() AND i.class_name = (
        SELECT c.name FROM objects_class c WHERE c.id = COALESCE(NEW.class_id, OLD.class_id));
    IF tells IS NULL THEN
        RETURN NULL;
    END IF;
    before := to_jsonb(OLD);
    after := to_jsonb(NEW);
    INSERT INTO objects_change (class_id, object_id, before, after, size)
    VALUES (COALESCE(NEW.class_id, OLD.class_id), COALESCE(NEW.object_id, OLD.object_id), before,
            after, COALESCE(pg_column_size(before), 0) + COALESCE(pg_column_size(after), 0));
    IF tells THEN
        PERFORM pg_notify('objects_change', '');
    END IF;
    RETURN NULL;
END $$;

-- Arguments: the class, and the column that says whether a row is an object, if not all are.
CREATE OR REPLACE FUNCTION objects_change_of_statement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    shown text := TG_ARGV[1];
    tells boolean;
BEGIN
    SELECT i.asleep INTO tells FROM objects_interest i
    WHERE i.class_name = TG_ARGV[0] AND i.until > statement_timestamp();
    IF tells IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO objects_change (class_name, object_id, after, size)
        SELECT TG_ARGV[0], n.object_id, n.image, pg_column_size(n.image)
        FROM (SELECT r.object_id, to_jsonb(r) AS image FROM new_rows r OFFSET 0) n
        WHERE shown IS NULL OR (n.image ->> shown)::boolean;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO objects_change (class_name, object_id, before, size)
        SELECT TG_ARGV[0], o.object_id, o.image, pg_column_size(o.image)
        FROM (SELECT r.object_id, to_jsonb(r) AS image FROM old_rows r OFFSET 0) o
        WHERE shown IS NULL OR (o.image ->> shown)::boolean;
    ELSE
        INSERT INTO objects_change (class_name, object_id, before, after, size)
        SELECT TG_ARGV[0], c.object_id, c.before, c.after,
               COALESCE(pg_column_size(c.before), 0) + COALESCE(pg_column_size(c.after), 0)
        FROM (
            SELECT COALESCE(n.object_id, o.object_id) AS object_id,
                   CASE WHEN shown IS NULL OR (o.image ->> shown)::boolean THEN o.image END
                       AS before,
                   CASE WHEN shown IS NULL OR (n.image ->> shown)::boolean THEN n.image END
                       AS after
            FROM (SELECT r.object_id, to_jsonb(r) AS image FROM old_rows r OFFSET 0) o
            FULL JOIN (SELECT r.object_id, to_jsonb(r) AS image FROM new_rows r OFFSET 0) n
                   ON n.object_id = o.object_id
            OFFSET 0
        ) c
        WHERE c.before IS NOT NULL OR c.after IS NOT NULL;
    END IF;
    IF FOUND AND tells THEN
        PERFORM pg_notify('objects_change', '');
    END IF;
    RETURN NULL;
END $$;
