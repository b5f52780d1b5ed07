-- What operators count, an index less for every call, and every answer that was
-- not accepted.

-- +goose Up

-- Call identities that belong to no operation are found in the order of their
-- keys when they are pruned, so nobody needs them by operation.
DROP INDEX call_bindings_status_ref;

-- Counts the leases that were lost. An attempt that ends by itself is not in it.
CREATE INDEX attempts_lost ON attempts (operation_pk) WHERE outcome = 'lost';

-- An answer of the downstream that was not accepted, by attempt: it broke the
-- output contract, or it came when somebody else had the say. There may be more
-- than one, where a person has said to try again or a worker stood still.
CREATE TABLE rejected_receipts_new (
    operation_pk INTEGER NOT NULL REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    attempt INTEGER NOT NULL CONSTRAINT rejected_receipts_attempt CHECK (attempt >= 1),
    receipt_id TEXT NOT NULL,
    downstream_request_id TEXT NOT NULL,
    result_text TEXT NOT NULL,
    producer_revision TEXT NOT NULL,
    resource_revision TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    violation TEXT NOT NULL,
    recorded_at INTEGER NOT NULL CONSTRAINT rejected_receipts_recorded_at CHECK (recorded_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT rejected_receipts_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (operation_pk, attempt)
) STRICT;

INSERT INTO rejected_receipts_new SELECT * FROM rejected_receipts;
DROP TABLE rejected_receipts;
ALTER TABLE rejected_receipts_new RENAME TO rejected_receipts;

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
