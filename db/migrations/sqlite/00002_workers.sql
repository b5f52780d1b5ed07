-- What workers need: when an event may be claimed next, whose turn it is, and a
-- row for every attempt; and what remains of operations that were pruned.

-- +goose Up

-- next_attempt_at is when an event may next be claimed: 0 means at once, and
-- while it is leased it is the end of the lease. A lane is a tool and a tenant,
-- between which workers take turns; it follows from the operation.
ALTER TABLE outbox ADD COLUMN next_attempt_at INTEGER NOT NULL DEFAULT 0
    CONSTRAINT outbox_next_attempt_at CHECK (next_attempt_at >= 0);
ALTER TABLE outbox ADD COLUMN lane TEXT NOT NULL DEFAULT '';

UPDATE outbox SET
    next_attempt_at = COALESCE(lease_until, 0),
    lane = COALESCE((SELECT tool_name || char(10) || tenant_id FROM operations WHERE operations.operation_pk = outbox.operation_pk), '');

CREATE INDEX outbox_due ON outbox (lane, next_attempt_at) WHERE state IN ('pending', 'processing');

-- Every attempt that has ended, and how. One that is running is in its event.
CREATE TABLE attempts (
    operation_pk INTEGER NOT NULL REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    attempt INTEGER NOT NULL CONSTRAINT attempts_attempt CHECK (attempt >= 1),
    worker_id TEXT NOT NULL,
    started_at INTEGER NOT NULL CONSTRAINT attempts_started_at CHECK (started_at >= 0),
    ended_at INTEGER NOT NULL CONSTRAINT attempts_ended_at CHECK (ended_at >= started_at),
    outcome TEXT NOT NULL
        CONSTRAINT attempts_outcome CHECK (outcome IN ('succeeded', 'reconciled', 'not_done', 'given_up', 'denied', 'unknown', 'rejected', 'interrupted', 'lost')),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT attempts_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (operation_pk, attempt)
) STRICT, WITHOUT ROWID;

-- What people have decided about operations that were in review, and why. seq is
-- the number of attempts that there were. Written once, never changed.
CREATE TABLE resolutions (
    operation_pk INTEGER NOT NULL REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    seq INTEGER NOT NULL CONSTRAINT resolutions_seq CHECK (seq >= 1),
    decision TEXT NOT NULL
        CONSTRAINT resolutions_decision CHECK (decision IN ('confirmed_done', 'confirmed_not_done', 'try_again', 'abandoned')),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at INTEGER NOT NULL CONSTRAINT resolutions_decided_at CHECK (decided_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT resolutions_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (operation_pk, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_in_review ON operations (operation_pk) WHERE state = 'in_review';

-- Tools that workers leave alone until somebody resumes them.
CREATE TABLE paused_tools (
    tool_name TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    paused_at INTEGER NOT NULL CONSTRAINT paused_tools_paused_at CHECK (paused_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT paused_tools_row_digest CHECK (length(row_digest) IN (0, 32))
) STRICT;

-- Where an operation was that has been pruned: its key is refused for good,
-- whatever the request. Written once, never changed.
CREATE TABLE tombstones (
    tenant_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    status_ref TEXT NOT NULL UNIQUE
        CONSTRAINT tombstones_status_ref CHECK (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_' AND substr(status_ref, 8) NOT GLOB '*[^0-9a-f]*'),
    state TEXT NOT NULL CONSTRAINT tombstones_state CHECK (state IN ('succeeded', 'failed')),
    request_sha256 TEXT NOT NULL
        CONSTRAINT tombstones_request CHECK (length(request_sha256) = 64 AND request_sha256 NOT GLOB '*[^0-9a-f]*'),
    created_at INTEGER NOT NULL CONSTRAINT tombstones_created_at CHECK (created_at >= 0),
    completed_at INTEGER NOT NULL CONSTRAINT tombstones_completed_at CHECK (completed_at >= created_at),
    pruned_at INTEGER NOT NULL CONSTRAINT tombstones_pruned_at CHECK (pruned_at >= completed_at),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT tombstones_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (tenant_id, subject_id, tool_name, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Finds the call identities that go with an operation.
CREATE INDEX call_bindings_status_ref ON call_bindings (status_ref);

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
