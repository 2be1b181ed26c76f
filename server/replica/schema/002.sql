-- Version 2. Poses of moved layers: a state, no history, so one row of a layer. A row without a body
-- says that the layer came or went at since: a pose of before that is of another layer.

CREATE SEQUENCE pose_number;
CREATE TABLE pose (
    locale text NOT NULL,
    layer text NOT NULL,
    number int8 NOT NULL,             -- rises with each pose that is put, over all layers
    since int8 NOT NULL,              -- revision at which the layer came or went; 0: not known
    rev int8 NOT NULL DEFAULT 0,      -- of the locale at the node that has put the pose
    node text NOT NULL DEFAULT '',
    body bytea NOT NULL DEFAULT '',
    PRIMARY KEY (locale, layer)
) WITH (fillfactor = 50);
CREATE INDEX pose_by_number ON pose (number);

-- Kinds 2, 3 and 4 of entries: a locale is deleted (its layer is ''), a layer is put, a layer is deleted.
CREATE FUNCTION end_pose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.layer = '' THEN
        DELETE FROM pose WHERE locale = NEW.locale;
    END IF;
    INSERT INTO pose (locale, layer, number, since) VALUES (NEW.locale, NEW.layer, 0, NEW.rev)
    ON CONFLICT (locale, layer) DO UPDATE SET number = 0, since = excluded.since, body = '';
    RETURN NULL;
END $$;
CREATE TRIGGER edit_ends_pose AFTER INSERT ON edit FOR EACH ROW
WHEN (NEW.kind IN (2, 3, 4)) EXECUTE FUNCTION end_pose();

-- One at a time, so that a reader who has seen a number has seen all that are lower. Not waited for on
-- the disk, as a node does not wait for its own.
CREATE FUNCTION put_poses(node_ text, locales text[], layers text[], revs int8[], bodies bytea[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    LOCK TABLE pose IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO pose (locale, layer, number, since, rev, node, body)
    SELECT e.locale, e.layer, nextval('pose_number'), 0, e.rev, node_, e.body
    FROM unnest(locales, layers, revs, bodies) AS e(locale, layer, rev, body)
    WHERE NOT EXISTS (SELECT FROM pose WHERE pose.locale = e.locale AND pose.layer = ''
                      AND pose.since > e.rev)
    ON CONFLICT (locale, layer) DO UPDATE SET number = excluded.number, rev = excluded.rev,
        node = excluded.node, body = excluded.body WHERE pose.since <= excluded.rev;
    PERFORM pg_notify('kota ' || current_schema, '');
END $$;
