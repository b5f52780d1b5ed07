-- Adopts the six tables of a persistent-tool-runtime-v3 database. It runs inside
-- the migration's transaction, after the v3 tables were renamed to v3_... and
-- the ledger's own were made; row digests and status_refs follow in Go.
INSERT INTO call_bindings (tenant_id, subject_id, provider, api_family, response_id, call_id, fingerprint_sha256, created_at)
SELECT tenant_id, subject_id, provider, api_family, response_id, call_id, fingerprint_sha256, created_at
FROM v3_call_bindings;

INSERT INTO operations (
    operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
    input_schema_revision, output_schema_revision, effect_revision, handler_revision, producer_revision,
    policy_revision, approval_id, approver_id, approval_digest, approval_expires_at, approved_at,
    first_operation_id, first_call_id, first_response_id, first_provider, first_api_family,
    first_adapter_revision, status_ref, state, created_at, updated_at, completed_at
)
SELECT
    operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
    input_schema_revision, output_schema_revision, effect_revision, handler_revision, producer_revision,
    policy_revision, approval_id, approver_id, approval_digest, approval_expires_at, approved_at,
    first_operation_id, first_call_id, first_response_id, first_provider, first_api_family,
    first_adapter_revision, status_ref, state, created_at, updated_at, completed_at
FROM v3_operations;

INSERT INTO outbox (operation_pk, event_id, payload_json, state, lease_owner, lease_until, attempt_count, created_at, updated_at)
SELECT operation_pk, event_id, payload_json, state, lease_owner, lease_until, attempt_count, created_at, updated_at
FROM v3_outbox;

INSERT INTO downstream_receipts (
    downstream_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
    downstream_request_id, result_json, producer_revision, resource_revision, observed_at, effect_revision, committed_at
)
SELECT
    downstream_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
    downstream_request_id, result_json, producer_revision, resource_revision, observed_at, effect_revision, committed_at
FROM v3_downstream_receipts;

INSERT INTO local_receipts (
    operation_pk, receipt_id, downstream_request_id, request_sha256, result_json,
    producer_revision, resource_revision, observed_at, effect_revision, reconciled_at
)
SELECT
    operation_pk, receipt_id, downstream_request_id, request_sha256, result_json,
    producer_revision, resource_revision, observed_at, effect_revision, reconciled_at
FROM v3_local_receipts;
