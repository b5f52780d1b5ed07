-- What operators and hosts ask: why an attempt ended so, who paused a tool and when, and
-- what has ended since they last asked.

-- +goose Up

-- Why an attempt has ended as it did, in a word that holds no value. Empty where how it
-- ended says it, and for attempts from before this column.
ALTER TABLE attempts ADD COLUMN cause TEXT NOT NULL DEFAULT '';

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

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
