-- What an audit needs to see that something is missing, and what people have
-- decided beyond the pruning of an operation; and why tools were paused.

-- +goose Up

-- How many decisions of people there are about an operation, from the first one
-- on that is made with this column.
ALTER TABLE outbox ADD COLUMN decisions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tombstones ADD COLUMN decisions INTEGER NOT NULL DEFAULT 0
    CONSTRAINT tombstones_decisions CHECK (decisions >= 0);

-- What people have decided about operations that were pruned since. Written once,
-- never changed, never removed.
CREATE TABLE tombstone_resolutions (
    status_ref TEXT NOT NULL REFERENCES tombstones (status_ref) ON DELETE RESTRICT,
    seq INTEGER NOT NULL CONSTRAINT tombstone_resolutions_seq CHECK (seq >= 1),
    decision TEXT NOT NULL
        CONSTRAINT tombstone_resolutions_decision CHECK (decision IN ('confirmed_done', 'confirmed_not_done', 'try_again', 'abandoned', 'cancelled')),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at INTEGER NOT NULL CONSTRAINT tombstone_resolutions_decided_at CHECK (decided_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT tombstone_resolutions_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (status_ref, seq)
) STRICT, WITHOUT ROWID;

-- A person may cancel an operation before its first attempt; seq is 1 then.
CREATE TABLE resolutions_new (
    operation_pk INTEGER NOT NULL REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    seq INTEGER NOT NULL CONSTRAINT resolutions_seq CHECK (seq >= 1),
    decision TEXT NOT NULL
        CONSTRAINT resolutions_decision CHECK (decision IN ('confirmed_done', 'confirmed_not_done', 'try_again', 'abandoned', 'cancelled')),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at INTEGER NOT NULL CONSTRAINT resolutions_decided_at CHECK (decided_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT resolutions_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (operation_pk, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO resolutions_new (operation_pk, seq, decision, actor, reason, decided_at, row_digest)
SELECT operation_pk, seq, decision, actor, reason, decided_at, row_digest FROM resolutions;
DROP TABLE resolutions;
ALTER TABLE resolutions_new RENAME TO resolutions;

-- How many tombstones there are: each is the only thing that keeps its key refused.
INSERT INTO runtime_metadata (metadata_key, metadata_value)
SELECT 'tombstones', CAST(COUNT(*) AS TEXT) FROM tombstones;

-- The pauses of tools that were resumed, from the first one on; the one that holds is
-- in paused_tools. Written once, never changed, never removed.
CREATE TABLE past_pauses (
    tool_name TEXT NOT NULL,
    seq INTEGER NOT NULL CONSTRAINT past_pauses_seq CHECK (seq >= 1),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    paused_at INTEGER NOT NULL CONSTRAINT past_pauses_paused_at CHECK (paused_at >= 0),
    resumed_by TEXT NOT NULL,
    resume_reason TEXT NOT NULL,
    resumed_at INTEGER NOT NULL CONSTRAINT past_pauses_resumed_at CHECK (resumed_at >= paused_at),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT past_pauses_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (tool_name, seq)
) STRICT, WITHOUT ROWID;

-- Where each operation that has ended, or went in review, is in the order in which a host
-- hears of it. A receipt that was observed and accepted in one transaction tells it by
-- its own key, so that the transaction of a call has no more to write; every other end
-- is a row here. Written once, never changed, never removed.
CREATE TABLE endings (
    ending_pk INTEGER PRIMARY KEY,
    status_ref TEXT NOT NULL,
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT endings_row_digest CHECK (length(row_digest) IN (0, 32))
) STRICT;

-- The key of the receipt of what was pruned since; 0 where there was none, or where it
-- was pruned before this column.
ALTER TABLE tombstones ADD COLUMN receipt_pk INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tombstones_receipt ON tombstones (receipt_pk) WHERE receipt_pk > 0;

-- How many pauses there were, the ones that hold among them.
INSERT INTO runtime_metadata (metadata_key, metadata_value)
SELECT 'pauses', CAST(COUNT(*) AS TEXT) FROM paused_tools;

-- Attempts that were counted before there were rows for them, and those of another
-- implementation: nobody knows any more how they ended. Without a digest, because
-- the runtime has not written them.
INSERT INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome)
WITH RECURSIVE counted (operation_pk, attempt, created_at) AS (
    SELECT outbox.operation_pk, outbox.attempt_count - CASE WHEN outbox.state = 'processing' THEN 1 ELSE 0 END, operations.created_at
    FROM outbox JOIN operations ON operations.operation_pk = outbox.operation_pk
    WHERE outbox.attempt_count > (SELECT COUNT(*) FROM attempts WHERE attempts.operation_pk = outbox.operation_pk)
    UNION ALL
    SELECT operation_pk, attempt - 1, created_at FROM counted WHERE attempt > 1
)
SELECT operation_pk, attempt, 'unrecorded', created_at, created_at, 'unknown' FROM counted
WHERE attempt >= 1 AND NOT EXISTS (
    SELECT 1 FROM attempts WHERE attempts.operation_pk = counted.operation_pk AND attempts.attempt = counted.attempt
);

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
