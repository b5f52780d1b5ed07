-- The ledger: an operation per intent, the event that a worker claims, the
-- downstream's receipt as observed and as accepted, and every call identity.
--
-- JSON is canonical text, because digests cover its bytes. Times are whole Unix
-- seconds from the runtime's clock. row_digest is the SHA-256 over the other
-- columns of its row, written with every change of the row, so that the audit
-- finds a change that was made past the runtime; empty only in a row that the
-- runtime did not write.
--
-- Receipt ids are unique within a tenant's tool and not over the whole table:
-- two downstreams may number alike.

-- +goose Up
CREATE TABLE runtime_metadata (
    metadata_key TEXT PRIMARY KEY,
    metadata_value TEXT NOT NULL
) STRICT;

INSERT INTO runtime_metadata (metadata_key, metadata_value)
VALUES ('schema_version', 'toolruntime-ledger-v1');

-- Every call identity ever used, whatever was answered. status_ref is that of
-- the intent the call named.
CREATE TABLE call_bindings (
    tenant_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    api_family TEXT NOT NULL,
    response_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    fingerprint_sha256 TEXT NOT NULL
        CONSTRAINT call_bindings_fingerprint CHECK (length(fingerprint_sha256) = 64 AND fingerprint_sha256 NOT GLOB '*[^0-9a-f]*'),
    created_at INTEGER NOT NULL CONSTRAINT call_bindings_created_at CHECK (created_at >= 0),
    status_ref TEXT NOT NULL DEFAULT ''
        CONSTRAINT call_bindings_status_ref CHECK (status_ref = '' OR (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_' AND substr(status_ref, 8) NOT GLOB '*[^0-9a-f]*')),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT call_bindings_row_digest CHECK (length(row_digest) IN (0, 32)),
    PRIMARY KEY (tenant_id, subject_id, provider, api_family, response_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    operation_pk INTEGER PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    idempotency_key TEXT NOT NULL CONSTRAINT operations_idempotency_key CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request_sha256 TEXT NOT NULL
        CONSTRAINT operations_request CHECK (length(request_sha256) = 64 AND request_sha256 NOT GLOB '*[^0-9a-f]*'),
    arguments_json TEXT NOT NULL,
    input_schema_revision TEXT NOT NULL,
    output_schema_revision TEXT NOT NULL,
    effect_revision TEXT NOT NULL,
    handler_revision TEXT NOT NULL,
    producer_revision TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    approver_id TEXT NOT NULL,
    approval_digest TEXT NOT NULL
        CONSTRAINT operations_approval_digest CHECK (length(approval_digest) = 64 AND approval_digest NOT GLOB '*[^0-9a-f]*'),
    approval_expires_at INTEGER NOT NULL CONSTRAINT operations_approval_expires_at CHECK (approval_expires_at >= 0),
    approved_at INTEGER NOT NULL CONSTRAINT operations_approved_at CHECK (approved_at >= 0),
    first_operation_id TEXT NOT NULL,
    first_call_id TEXT NOT NULL,
    first_response_id TEXT NOT NULL,
    first_provider TEXT NOT NULL,
    first_api_family TEXT NOT NULL,
    first_adapter_revision TEXT NOT NULL,
    status_ref TEXT NOT NULL UNIQUE
        CONSTRAINT operations_status_ref CHECK (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_' AND substr(status_ref, 8) NOT GLOB '*[^0-9a-f]*'),
    state TEXT NOT NULL
        CONSTRAINT operations_state CHECK (state IN ('pending', 'processing', 'succeeded', 'failed', 'in_review')),
    created_at INTEGER NOT NULL CONSTRAINT operations_created_at CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CONSTRAINT operations_updated_at CHECK (updated_at >= created_at),
    completed_at INTEGER CONSTRAINT operations_completed_at CHECK (completed_at IS NULL OR completed_at >= created_at),
    -- Why it is in review or has failed: an error code of the contract.
    reason TEXT NOT NULL DEFAULT ''
        CONSTRAINT operations_reason CHECK ((reason = '') = (state IN ('pending', 'processing', 'succeeded'))),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT operations_row_digest CHECK (length(row_digest) IN (0, 32)),
    UNIQUE (tenant_id, subject_id, tool_name, idempotency_key)
) STRICT;

-- attempt_count is the fence: it grows with each claim, and every later write
-- of a claim names it.
CREATE TABLE outbox (
    operation_pk INTEGER PRIMARY KEY REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    event_id TEXT NOT NULL UNIQUE,
    payload_json TEXT NOT NULL,
    state TEXT NOT NULL CONSTRAINT outbox_state CHECK (state IN ('pending', 'processing', 'delivered', 'parked')),
    lease_owner TEXT,
    lease_until INTEGER,
    attempt_count INTEGER NOT NULL DEFAULT 0 CONSTRAINT outbox_attempt_count CHECK (attempt_count >= 0),
    created_at INTEGER NOT NULL CONSTRAINT outbox_created_at CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CONSTRAINT outbox_updated_at CHECK (updated_at >= created_at),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT outbox_row_digest CHECK (length(row_digest) IN (0, 32)),
    CONSTRAINT outbox_lease CHECK (
        (state = 'processing' AND lease_owner IS NOT NULL AND lease_until IS NOT NULL)
        OR (state <> 'processing' AND lease_owner IS NULL AND lease_until IS NULL)
    )
) STRICT;

-- What the downstream said, as it was observed. Written once, never changed.
CREATE TABLE downstream_receipts (
    downstream_pk INTEGER PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_sha256 TEXT NOT NULL
        CONSTRAINT downstream_receipts_request CHECK (length(request_sha256) = 64 AND request_sha256 NOT GLOB '*[^0-9a-f]*'),
    receipt_id TEXT NOT NULL,
    downstream_request_id TEXT NOT NULL,
    result_json TEXT NOT NULL,
    producer_revision TEXT NOT NULL,
    resource_revision TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    effect_revision TEXT NOT NULL,
    committed_at INTEGER NOT NULL CONSTRAINT downstream_receipts_committed_at CHECK (committed_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT downstream_receipts_row_digest CHECK (length(row_digest) IN (0, 32)),
    UNIQUE (tenant_id, subject_id, tool_name, idempotency_key),
    UNIQUE (tenant_id, tool_name, receipt_id),
    UNIQUE (tenant_id, tool_name, downstream_request_id)
) STRICT;

-- The receipt that the runtime accepted: the answer of every replay. Written
-- once, never changed.
CREATE TABLE local_receipts (
    operation_pk INTEGER PRIMARY KEY REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    receipt_id TEXT NOT NULL,
    downstream_request_id TEXT NOT NULL,
    request_sha256 TEXT NOT NULL
        CONSTRAINT local_receipts_request CHECK (length(request_sha256) = 64 AND request_sha256 NOT GLOB '*[^0-9a-f]*'),
    result_json TEXT NOT NULL,
    producer_revision TEXT NOT NULL,
    resource_revision TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    effect_revision TEXT NOT NULL,
    reconciled_at INTEGER NOT NULL CONSTRAINT local_receipts_reconciled_at CHECK (reconciled_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT local_receipts_row_digest CHECK (length(row_digest) IN (0, 32))
) STRICT;

-- An answer of the downstream that broke the tool's output contract: kept as
-- evidence for a person, never delivered, never the reason for a second run.
CREATE TABLE rejected_receipts (
    operation_pk INTEGER PRIMARY KEY REFERENCES operations (operation_pk) ON DELETE RESTRICT,
    attempt INTEGER NOT NULL CONSTRAINT rejected_receipts_attempt CHECK (attempt >= 1),
    receipt_id TEXT NOT NULL,
    downstream_request_id TEXT NOT NULL,
    result_text TEXT NOT NULL,
    producer_revision TEXT NOT NULL,
    resource_revision TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    violation TEXT NOT NULL,
    recorded_at INTEGER NOT NULL CONSTRAINT rejected_receipts_recorded_at CHECK (recorded_at >= 0),
    row_digest BLOB NOT NULL DEFAULT x'' CONSTRAINT rejected_receipts_row_digest CHECK (length(row_digest) IN (0, 32))
) STRICT;

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
