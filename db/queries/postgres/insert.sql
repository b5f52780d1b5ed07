-- name: InsertOperation :one
-- InsertOperation takes a scope that is free for an approved intent; no row means
-- that somebody else was faster.
INSERT INTO operations (
    tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
    input_schema_revision, output_schema_revision, effect_revision, handler_revision,
    producer_revision, policy_revision, approval_id, approver_id, approval_digest,
    approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
    first_provider, first_api_family, first_adapter_revision, status_ref, state,
    created_at, updated_at, completed_at, reason, row_digest, effect_kind
) VALUES (
    @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @arguments_json,
    @input_schema_revision, @output_schema_revision, @effect_revision, @handler_revision,
    @producer_revision, @policy_revision, @approval_id, @approver_id, @approval_digest,
    @approval_expires_at, @approved_at, @first_operation_id, @first_call_id, @first_response_id,
    @first_provider, @first_api_family, @first_adapter_revision, @status_ref, @state,
    @created_at, @updated_at, @completed_at, @reason, @row_digest, @effect_kind
) ON CONFLICT (tenant_id, subject_id, tool_name, idempotency_key) DO NOTHING
RETURNING operation_pk;
