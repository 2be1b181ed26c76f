-- The shared edit log; server/replica/cluster.h says what its parts promise, docs/cluster.md how they
-- keep it. Runs with the schema's name as search_path, in a transaction with an advisory lock.
--
-- The row of `locale` is the lock that orders its edits: who appends holds it until the commit.
-- Times are the engine's alone.

CREATE TABLE meta (
    version int4 NOT NULL,
    identity text NOT NULL,                                  -- 32 hexadecimal digits: other in each log
    collected timestamptz NOT NULL DEFAULT clock_timestamp() -- when garbage was last looked for
);
INSERT INTO meta VALUES (0, replace(gen_random_uuid()::text, '-', ''));
CREATE UNIQUE INDEX meta_is_one ON meta ((true));

CREATE TABLE locale (
    id text PRIMARY KEY,
    rev int8 NOT NULL DEFAULT 0,      -- of the last edit
    first int8 NOT NULL DEFAULT 1,    -- the oldest edit that is there; rev + 1: none
    snapshot int8 NOT NULL DEFAULT 0, -- revision of the newest verified one; 0: none
    CHECK (rev >= 0 AND first >= 1 AND first <= rev + 1 AND snapshot <= rev)
) WITH (fillfactor = 50);

CREATE TABLE edit (
    locale text NOT NULL,
    rev int8 NOT NULL,
    op_id text NOT NULL CONSTRAINT edit_op_id UNIQUE,
    node text NOT NULL,
    kind int4 NOT NULL,
    layer text NOT NULL,
    source text NOT NULL,
    request bytea NOT NULL,
    rect int8[],          -- column, row, cols, rows
    fence int8 NOT NULL,  -- 0: none
    written timestamptz NOT NULL DEFAULT clock_timestamp(),
    blobs bytea NOT NULL, -- hashes of 32 bytes, one behind the other
    digest bytea NOT NULL, -- BLAKE2b-256 of all that the reader gets
    data bytea NOT NULL,
    PRIMARY KEY (locale, rev)
);
ALTER TABLE edit ALTER data SET STORAGE EXTERNAL, ALTER blobs SET STORAGE EXTERNAL;
CREATE INDEX edit_with_blobs ON edit (locale) WHERE octet_length(blobs) > 0;

-- The op_ids of edits that were trimmed a short while ago (an hour): who asks whether a commit in
-- doubt came to be must find them still, and a key that was used is not taken for a new one.
CREATE TABLE past (
    op_id text PRIMARY KEY,
    locale text NOT NULL,
    rev int8 NOT NULL,
    trimmed timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE blob (
    hash bytea PRIMARY KEY,               -- BLAKE2b-256
    length int8 NOT NULL,
    written timestamptz NOT NULL DEFAULT clock_timestamp(), -- or asked for: not garbage for a while
    verified boolean NOT NULL DEFAULT false,                -- was read back once, and was right
    damaged boolean NOT NULL DEFAULT false                  -- was read, and was not: put it again
) WITH (fillfactor = 80);

CREATE TABLE blob_part (
    hash bytea NOT NULL,
    part int4 NOT NULL,
    written timestamptz NOT NULL DEFAULT clock_timestamp(),
    data bytea NOT NULL,
    PRIMARY KEY (hash, part)
);
ALTER TABLE blob_part ALTER data SET STORAGE EXTERNAL;

CREATE TABLE snapshot (
    locale text NOT NULL,
    rev int8 NOT NULL,
    op_id text NOT NULL,
    node text NOT NULL,
    verified boolean NOT NULL DEFAULT false,
    written timestamptz NOT NULL DEFAULT clock_timestamp(),
    body bytea NOT NULL,  -- the hash of a blob
    blobs bytea NOT NULL, -- the hashes that the body names
    PRIMARY KEY (locale, rev)
);
ALTER TABLE snapshot ALTER blobs SET STORAGE EXTERNAL;

-- Cells of a fixed grid. A lease is the rows of one fence, all of them or none.
CREATE SEQUENCE fence;
CREATE TABLE lease (
    locale text NOT NULL,
    x int8 NOT NULL,
    y int8 NOT NULL,
    holder text NOT NULL,
    fence int8 NOT NULL,
    cells int4 NOT NULL, -- how many rows its fence has
    expires timestamptz NOT NULL,
    PRIMARY KEY (locale, x, y)
) WITH (fillfactor = 50);
CREATE INDEX lease_fence ON lease (fence);

CREATE TABLE node (
    id text PRIMARY KEY,
    url text NOT NULL,
    locales text NOT NULL,
    patch_slots int8 NOT NULL,
    patches int8 NOT NULL,
    instance text NOT NULL, -- other in each process: tells two of one name apart
    expires timestamptz NOT NULL
) WITH (fillfactor = 50);

-- ---- appending ----------------------------------------------------------------------------------

CREATE FUNCTION hashes(blobs bytea) RETURNS SETOF bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(b, i * 32 + 1, 32)
    FROM (SELECT blobs || ''::bytea AS b) AS whole, generate_series(0, octet_length(b) / 32 - 1) AS i
$$;

-- Makes sure that blobs are there and stay for an hour. The one that is not, or NULL.
CREATE FUNCTION touch(wanted bytea[]) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    missing bytea;
BEGIN
    -- an update, not a lock: the garbage collector looks at a row again that has changed
    UPDATE blob SET written = clock_timestamp()
    FROM (SELECT hash FROM blob WHERE hash = ANY (wanted)
          AND written < clock_timestamp() - interval '10 min' ORDER BY hash FOR UPDATE) AS old
    WHERE blob.hash = old.hash;
    SELECT w INTO missing FROM unnest(wanted) AS w
    WHERE NOT EXISTS (SELECT FROM blob WHERE hash = w AND NOT damaged) LIMIT 1;
    RETURN missing;
END $$;

-- The rows of some locales are locked in the order of their ids; those that are not there are made.
CREATE FUNCTION hold(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    each text;
BEGIN
    FOR each IN SELECT DISTINCT u.id FROM unnest(ids) AS u(id) ORDER BY 1 LOOP
        INSERT INTO locale (id) VALUES (each) ON CONFLICT DO NOTHING;
        UPDATE locale SET rev = rev WHERE id = each;
    END LOOP;
END $$;

-- KT001: a locale is further, or stands on another edit than befores says ('': nothing). KT002: a
-- fence is stale (DETAIL: the entry's index). KT003: a blob is missing. True: they were there already
-- (only with again_).
CREATE FUNCTION append(node_ text, again_ boolean, locales text[], revs int8[], op_ids text[],
                       befores text[], kinds int4[], layers text[], sources text[],
                       requests bytea[], rects int8[], fences int8[], blobs_ bytea[],
                       digests bytea[], datas bytea[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    each record;
    now_ int8;
    cells_ record;
    missing bytea;
    known text;
BEGIN
    -- what is acknowledged is durable, whatever this transaction did before
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF again_ THEN
        -- who committed it, or is about to, holds these rows
        PERFORM hold(locales);
        SELECT count(*) INTO now_ FROM unnest(locales, revs, op_ids) AS e(locale, rev, op_id)
        WHERE EXISTS (SELECT FROM edit WHERE edit.op_id = e.op_id AND edit.locale = e.locale
                      AND edit.rev = e.rev)
        OR EXISTS (SELECT FROM past WHERE past.op_id = e.op_id AND past.locale = e.locale
                   AND past.rev = e.rev);
        IF now_ = cardinality(revs) THEN
            RETURN true;
        END IF;
    END IF;

    FOR each IN SELECT e.id, min(e.rev) AS low, max(e.rev) AS high, count(*) AS entries,
                       (array_agg(e.before ORDER BY e.rev))[1] AS before
                FROM unnest(locales, revs, befores) AS e(id, rev, before)
                GROUP BY e.id ORDER BY e.id LOOP
        IF each.low = 1 THEN
            INSERT INTO locale (id) VALUES (each.id) ON CONFLICT DO NOTHING;
        END IF;
        UPDATE locale SET rev = rev + each.entries WHERE id = each.id RETURNING rev INTO now_;
        IF now_ IS DISTINCT FROM each.high OR each.low <> each.high - each.entries + 1 THEN
            RAISE EXCEPTION 'locale % is at revision %, and not at %', each.id,
                coalesce(now_ - each.entries, 0), each.low - 1 USING ERRCODE = 'KT001';
        END IF;
        IF each.before <> '' THEN
            -- an edit that was trimmed is the newest snapshot's, since it is the locale's last
            SELECT o.op_id INTO known FROM (
                SELECT op_id FROM edit WHERE locale = each.id AND rev = each.low - 1
                UNION ALL
                SELECT op_id FROM snapshot WHERE locale = each.id AND rev = each.low - 1
                    AND verified) AS o LIMIT 1;
            IF known <> each.before THEN
                RAISE EXCEPTION 'locale % has another edit at revision %', each.id, each.low - 1
                    USING ERRCODE = 'KT001';
            END IF;
        END IF;
    END LOOP;

    FOR each IN SELECT DISTINCT e.blobs FROM unnest(blobs_) AS e(blobs)
                WHERE octet_length(e.blobs) > 0 LOOP
        missing := touch(ARRAY(SELECT hashes(each.blobs)));
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'blob % is not there', encode(missing, 'hex') USING ERRCODE = 'KT003';
        END IF;
    END LOOP;

    FOR each IN SELECT e.fence, min(e.i) - 1 AS at FROM unnest(fences) WITH ORDINALITY AS e(fence, i)
                WHERE e.fence <> 0 GROUP BY e.fence ORDER BY e.fence LOOP
        SELECT count(*) AS held, max(l.cells) AS wanted INTO cells_ FROM
            (SELECT cells FROM lease WHERE fence = each.fence AND holder = node_
             AND expires > clock_timestamp() ORDER BY locale, x, y FOR SHARE) AS l;
        IF cells_.held = 0 OR cells_.held <> cells_.wanted THEN
            RAISE EXCEPTION 'fence % is stale', each.fence
                USING ERRCODE = 'KT002', DETAIL = each.at::text;
        END IF;
    END LOOP;

    INSERT INTO edit (locale, rev, op_id, node, kind, layer, source, request, rect, fence, blobs,
                      digest, data)
    SELECT e.locale, e.rev, e.op_id, node_, e.kind, e.layer, e.source, e.request,
        CASE WHEN rects[4 * e.i] >= 0 THEN rects[4 * e.i - 3 : 4 * e.i] END,
        e.fence, e.blobs, e.digest, e.data
    FROM unnest(locales, revs, op_ids, kinds, layers, sources, requests, fences, blobs_, digests,
                datas) WITH ORDINALITY
        AS e(locale, rev, op_id, kind, layer, source, request, fence, blobs, digest, data, i);
    -- behind the insert: that has waited for whoever trims an edit of one of these op_ids just now
    IF EXISTS (SELECT FROM past WHERE past.op_id = ANY (op_ids)) THEN
        RAISE EXCEPTION 'an op_id was in the log' USING ERRCODE = 'unique_violation';
    END IF;
    PERFORM pg_notify('kota ' || current_schema, '');
    RETURN false;
END $$;

-- Who waits too long for a row ends sessions of this program that hold one and wait for a client
-- that has stopped.
CREATE FUNCTION end_stopped(older interval) RETURNS int8 LANGUAGE sql AS $$
    SELECT count(*) FROM (
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
        AND application_name LIKE 'kota %' AND wait_event = 'ClientRead' AND backend_xid IS NOT NULL
        AND xact_start < clock_timestamp() - older) AS ended
$$;

-- ---- blobs and snapshots ------------------------------------------------------------------------

-- A part of a blob, or all of it: is_last makes it count. Not waited for on the disk: an append or a
-- snapshot that names it is durable only after it, and finds out if it is gone. But within a
-- transaction that an append ends (is_held) it goes with that.
CREATE FUNCTION put_blob(hash_ bytea, length_ int8, part_ int4, is_last boolean, data_ bytea,
                         is_held boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_held THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE blob SET written = clock_timestamp() WHERE hash = hash_ AND NOT damaged;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO blob_part (hash, part, data) VALUES (hash_, part_, data_)
    ON CONFLICT (hash, part) DO UPDATE SET data = excluded.data, written = clock_timestamp();
    IF is_last THEN
        INSERT INTO blob (hash, length) VALUES (hash_, length_)
        ON CONFLICT (hash) DO UPDATE SET length = excluded.length, written = clock_timestamp(),
            verified = false, damaged = false;
    END IF;
END $$;

-- 0: the row is made. 1: there is one of that revision or a newer one. 2: somebody is at it.
-- 3: the log is not there yet. 4: the log has another op_id at it.
CREATE FUNCTION claim_snapshot(node_ text, locale_ text, rev_ int8, op_id_ text, body_ bytea,
                               blobs_ bytea) RETURNS int4 LANGUAGE plpgsql AS $$
DECLARE
    head locale%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema || '/' || locale_, 0));
    SELECT * INTO head FROM locale WHERE id = locale_;
    IF NOT FOUND OR head.rev < rev_ THEN
        RETURN 3;
    ELSIF head.snapshot >= rev_ THEN
        RETURN 1;
    ELSIF NOT EXISTS (SELECT FROM edit WHERE locale = locale_ AND rev = rev_ AND op_id = op_id_) THEN
        RETURN 4;
    ELSIF EXISTS (SELECT FROM snapshot WHERE locale = locale_ AND NOT verified AND node <> node_
                  AND written > clock_timestamp() - interval '1 min') THEN
        RETURN 2;
    END IF;
    DELETE FROM snapshot WHERE locale = locale_ AND NOT verified;
    INSERT INTO snapshot (locale, rev, op_id, node, body, blobs)
    VALUES (locale_, rev_, op_id_, node_, body_, blobs_);
    RETURN 0;
END $$;

-- It was read back. False: the claim was lost meanwhile, or a blob is gone.
CREATE FUNCTION confirm_snapshot(node_ text, locale_ text, rev_ int8) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    row_ snapshot%ROWTYPE;
BEGIN
    PERFORM FROM locale WHERE id = locale_ FOR NO KEY UPDATE;
    SELECT * INTO row_ FROM snapshot
    WHERE locale = locale_ AND rev = rev_ AND node = node_ AND NOT verified FOR UPDATE;
    IF NOT FOUND OR touch(ARRAY(SELECT hashes(row_.blobs || row_.body))) IS NOT NULL THEN
        RETURN false;
    END IF;
    UPDATE snapshot SET verified = true WHERE locale = locale_ AND rev = rev_;
    UPDATE locale SET snapshot = rev_ WHERE id = locale_ AND snapshot < rev_;
    DELETE FROM snapshot WHERE locale = locale_ AND rev < rev_;
    RETURN true;
END $$;

-- Up to `most` of the oldest entries go that lie keep_ or more before the newest verified snapshot;
-- how many went.
CREATE FUNCTION trim_log(locale_ text, keep_ int8, most int4) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    newest int8;
    oldest int8;
    went int8;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT max(rev) INTO newest FROM snapshot WHERE locale = locale_ AND verified;
    SELECT min(rev) INTO oldest FROM edit WHERE locale = locale_;
    IF newest IS NULL OR oldest IS NULL THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM edit WHERE locale = locale_ AND rev <= newest - keep_ AND rev < oldest + most
        RETURNING op_id, rev),
    kept AS (INSERT INTO past (op_id, locale, rev) SELECT op_id, locale_, rev FROM gone
             ON CONFLICT DO NOTHING)
    SELECT count(*) INTO went FROM gone;
    IF went > 0 THEN
        -- locked before it is asked: what is appended until then is seen
        PERFORM FROM locale WHERE id = locale_ FOR NO KEY UPDATE;
        UPDATE locale SET first = coalesce((SELECT min(e.rev) FROM edit AS e
                                            WHERE e.locale = locale_), rev + 1)
        WHERE id = locale_;
    END IF;
    RETURN went;
END $$;

-- Blobs that nothing names and nobody has asked for since; at most each `pause`. How many went.
CREATE FUNCTION collect(older interval, pause interval) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    went int8;
BEGIN
    UPDATE meta SET collected = clock_timestamp() WHERE collected <= clock_timestamp() - pause;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM past WHERE trimmed < clock_timestamp() - interval '1 hour';
    WITH named AS MATERIALIZED (
        SELECT hashes(blobs) AS hash FROM edit WHERE octet_length(blobs) > 0
        UNION SELECT hashes(blobs || body) FROM snapshot)
    DELETE FROM blob WHERE written < clock_timestamp() - older
        AND NOT EXISTS (SELECT FROM named WHERE named.hash = blob.hash);
    GET DIAGNOSTICS went = ROW_COUNT;
    DELETE FROM blob_part AS p WHERE p.written < clock_timestamp() - older
        AND NOT EXISTS (SELECT FROM blob WHERE blob.hash = p.hash);
    RETURN went;
END $$;

-- 0: it is in the log now. 1: it was already. 2: a blob is not there.
CREATE FUNCTION adopt(node_ text, locale_ text, rev_ int8, op_id_ text, body_ bytea, blobs_ bytea)
RETURNS int4 LANGUAGE plpgsql AS $$
BEGIN
    IF touch(ARRAY(SELECT hashes(blobs_ || body_))) IS NOT NULL THEN
        RETURN 2;
    END IF;
    INSERT INTO locale (id, rev, first, snapshot) VALUES (locale_, rev_, rev_ + 1, rev_)
    ON CONFLICT (id) DO UPDATE SET rev = excluded.rev, first = excluded.first,
        snapshot = excluded.snapshot WHERE locale.rev = 0;
    IF NOT FOUND THEN
        RETURN 1;
    END IF;
    DELETE FROM snapshot WHERE locale = locale_;
    INSERT INTO snapshot (locale, rev, op_id, node, verified, body, blobs)
    VALUES (locale_, rev_, op_id_, node_, true, body_, blobs_);
    PERFORM pg_notify('kota ' || current_schema, '');
    RETURN 0;
END $$;

-- ---- leases and nodes ---------------------------------------------------------------------------

-- The fence is drawn when all rows are ours, so that it is above each one that they had.
-- KT004: somebody holds a cell (DETAIL: milliseconds left, a blank, who).
CREATE FUNCTION take_lease(node_ text, locale_ text, x0 int8, x1 int8, y0 int8, y1 int8, ms int8)
RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    wanted int4 := (x1 - x0 + 1) * (y1 - y0 + 1);
    got int8;
    drawn int8;
    other record;
BEGIN
    INSERT INTO lease SELECT locale_, x, y, node_, 0, wanted,
        clock_timestamp() + ms * interval '1 ms'
    FROM generate_series(x0, x1) AS x, generate_series(y0, y1) AS y ORDER BY x, y
    ON CONFLICT (locale, x, y) DO UPDATE SET holder = excluded.holder, fence = 0,
        cells = excluded.cells, expires = excluded.expires
    WHERE lease.expires < clock_timestamp();
    GET DIAGNOSTICS got = ROW_COUNT;
    IF got < wanted THEN
        SELECT holder, greatest(0, ceil(1000 * extract(epoch FROM expires - clock_timestamp())))::int8
            AS ms_left INTO other FROM lease
        WHERE locale = locale_ AND x BETWEEN x0 AND x1 AND y BETWEEN y0 AND y1
            AND (fence <> 0 OR holder <> node_)
        ORDER BY expires DESC LIMIT 1;
        RAISE EXCEPTION 'a cell is held' USING ERRCODE = 'KT004',
            DETAIL = coalesce(other.ms_left, 0) || ' ' || coalesce(other.holder, 'somebody');
    END IF;
    drawn := nextval('fence');
    UPDATE lease SET fence = drawn, expires = clock_timestamp() + ms * interval '1 ms'
    WHERE locale = locale_ AND x BETWEEN x0 AND x1 AND y BETWEEN y0 AND y1;
    RETURN drawn;
END $$;

-- Those of the fences that are still whole and in time; the others stay as they are, and lost.
CREATE FUNCTION renew_leases(node_ text, fences int8[], ms int8) RETURNS SETOF int8
LANGUAGE sql AS $$
    WITH mine AS MATERIALIZED (
        SELECT locale, x, y, fence, cells FROM lease
        WHERE fence = ANY (fences) AND holder = node_ AND expires >= clock_timestamp()
        ORDER BY locale, x, y FOR UPDATE),
    whole AS (SELECT fence FROM mine GROUP BY fence HAVING count(*) = max(cells)),
    renewed AS (
        UPDATE lease SET expires = clock_timestamp() + ms * interval '1 ms'
        FROM mine JOIN whole USING (fence)
        WHERE lease.locale = mine.locale AND lease.x = mine.x AND lease.y = mine.y
        RETURNING lease.fence)
    SELECT DISTINCT fence FROM renewed
$$;

-- A sign of life. The instance that gave the one before, if its time is not over; else "".
CREATE FUNCTION sign_of_life(id_ text, url_ text, locales_ text, slots int8, patches_ int8,
                             instance_ text, ms int8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT instance INTO before FROM node WHERE id = id_ AND expires > clock_timestamp();
    INSERT INTO node VALUES (id_, url_, locales_, slots, patches_, instance_,
                             clock_timestamp() + ms * interval '1 ms')
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, locales = excluded.locales,
        patch_slots = excluded.patch_slots, patches = excluded.patches,
        instance = excluded.instance, expires = excluded.expires;
    RETURN coalesce(before, '');
END $$;
