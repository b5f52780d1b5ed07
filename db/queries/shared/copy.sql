-- name: CopyOperation :exec
-- CopyOperation inserts an operation of another ledger under its key there,
-- which its event's payload binds.
INSERT INTO operations (
    operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
    input_schema_revision, output_schema_revision, effect_revision, handler_revision,
    producer_revision, policy_revision, approval_id, approver_id, approval_digest,
    approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
    first_provider, first_api_family, first_adapter_revision, status_ref, state,
    created_at, updated_at, completed_at, reason, row_digest, effect_kind
) VALUES (
    @operation_pk, @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @arguments_json,
    @input_schema_revision, @output_schema_revision, @effect_revision, @handler_revision,
    @producer_revision, @policy_revision, @approval_id, @approver_id, @approval_digest,
    @approval_expires_at, @approved_at, @first_operation_id, @first_call_id, @first_response_id,
    @first_provider, @first_api_family, @first_adapter_revision, @status_ref, @state,
    @created_at, @updated_at, @completed_at, @reason, @row_digest, @effect_kind
);

-- name: CopyDownstreamReceipt :exec
-- CopyDownstreamReceipt inserts a receipt of another ledger under its key there.
INSERT INTO downstream_receipts (
    downstream_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
    downstream_request_id, result_json, producer_revision, resource_revision,
    observed_at, effect_revision, committed_at, row_digest
) VALUES (
    @downstream_pk, @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @receipt_id,
    @downstream_request_id, @result_json, @producer_revision, @resource_revision,
    @observed_at, @effect_revision, @committed_at, @row_digest
);
