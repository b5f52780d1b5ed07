-- name: GetOperationByScope :one
-- GetOperationByScope returns the operation that holds a scope.
SELECT * FROM operations
WHERE tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key;

-- name: GetOperationByRef :one
-- GetOperationByRef returns the operation of a public name.
SELECT * FROM operations WHERE status_ref = @status_ref;

-- name: GetOperation :one
-- GetOperation returns an operation by its key.
SELECT * FROM operations WHERE operation_pk = @operation_pk;

-- name: InsertOperation :one
-- InsertOperation takes a scope for an approved intent; no row means that the
-- scope is taken.
INSERT INTO operations (
    tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
    input_schema_revision, output_schema_revision, effect_revision, handler_revision,
    producer_revision, policy_revision, approval_id, approver_id, approval_digest,
    approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
    first_provider, first_api_family, first_adapter_revision, status_ref, state,
    created_at, updated_at, completed_at, reason, row_digest
) VALUES (
    @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @arguments_json,
    @input_schema_revision, @output_schema_revision, @effect_revision, @handler_revision,
    @producer_revision, @policy_revision, @approval_id, @approver_id, @approval_digest,
    @approval_expires_at, @approved_at, @first_operation_id, @first_call_id, @first_response_id,
    @first_provider, @first_api_family, @first_adapter_revision, @status_ref, @state,
    @created_at, @updated_at, @completed_at, @reason, @row_digest
) ON CONFLICT (tenant_id, subject_id, tool_name, idempotency_key) DO NOTHING
RETURNING operation_pk;

-- name: MoveOperation :execrows
-- MoveOperation changes an operation's state, if it still is in the state and
-- at the update that the caller has read.
UPDATE operations
SET state = @state, updated_at = @updated_at, completed_at = @completed_at,
    reason = @reason, row_digest = @row_digest
WHERE operation_pk = @operation_pk AND state = @from_state AND row_digest = @from_digest;

-- name: ListOperations :many
-- ListOperations is a page of operations after a key.
SELECT * FROM operations WHERE operation_pk > @after_pk
ORDER BY operation_pk LIMIT CAST(@page AS BIGINT);
