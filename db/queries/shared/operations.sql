-- name: GetOperationByScope :one
-- GetOperationByScope returns the operation that holds a scope.
SELECT * FROM operations
WHERE tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key;

-- name: Lookup :one
-- Lookup returns the operation that holds a scope with the receipt that answers it
-- and the number of its last attempt, and what a call identity is bound to, if it is.
SELECT sqlc.embed(operations),
    local_receipts.operation_pk AS receipt_of, local_receipts.receipt_id, local_receipts.downstream_request_id,
    local_receipts.request_sha256 AS receipt_request, local_receipts.result_json,
    local_receipts.producer_revision AS receipt_producer, local_receipts.resource_revision,
    local_receipts.observed_at, local_receipts.effect_revision AS receipt_effect,
    local_receipts.reconciled_at, local_receipts.row_digest AS receipt_digest,
    CAST(COALESCE((SELECT outbox.attempt_count FROM outbox WHERE outbox.operation_pk = operations.operation_pk), 0) AS BIGINT) AS attempts,
    CAST(COALESCE((
        SELECT call_bindings.fingerprint_sha256 FROM call_bindings
        WHERE call_bindings.tenant_id = CAST(@tenant_id AS TEXT) AND call_bindings.subject_id = CAST(@subject_id AS TEXT)
            AND call_bindings.provider = CAST(@provider AS TEXT) AND call_bindings.api_family = CAST(@api_family AS TEXT)
            AND call_bindings.response_id = CAST(@response_id AS TEXT) AND call_bindings.call_id = CAST(@call_id AS TEXT)
    ), '') AS TEXT) AS fingerprint
FROM operations LEFT JOIN local_receipts ON local_receipts.operation_pk = operations.operation_pk
WHERE operations.tenant_id = CAST(@tenant_id AS TEXT) AND operations.subject_id = CAST(@subject_id AS TEXT)
    AND operations.tool_name = CAST(@tool_name AS TEXT) AND operations.idempotency_key = CAST(@idempotency_key AS TEXT);

-- name: LookupFree :one
-- LookupFree returns, for a scope that no operation holds, what a call identity is
-- bound to, if it is, and whether the scope has a tombstone. It has the parameters
-- of Lookup, in their order.
SELECT
    CAST(COALESCE((
        SELECT call_bindings.fingerprint_sha256 FROM call_bindings
        WHERE call_bindings.tenant_id = CAST(@tenant_id AS TEXT) AND call_bindings.subject_id = CAST(@subject_id AS TEXT)
            AND call_bindings.provider = CAST(@provider AS TEXT) AND call_bindings.api_family = CAST(@api_family AS TEXT)
            AND call_bindings.response_id = CAST(@response_id AS TEXT) AND call_bindings.call_id = CAST(@call_id AS TEXT)
    ), '') AS TEXT) AS fingerprint,
    CAST((
        SELECT COUNT(*) FROM tombstones
        WHERE tombstones.tenant_id = CAST(@tenant_id AS TEXT) AND tombstones.subject_id = CAST(@subject_id AS TEXT)
            AND tombstones.tool_name = CAST(@tool_name AS TEXT) AND tombstones.idempotency_key = CAST(@idempotency_key AS TEXT)
    ) AS BIGINT) AS tombstones;

-- name: GetClaimed :one
-- GetClaimed returns an operation with its event.
SELECT sqlc.embed(operations), sqlc.embed(outbox)
FROM operations JOIN outbox ON outbox.operation_pk = operations.operation_pk
WHERE operations.operation_pk = CAST(@operation_pk AS BIGINT);

-- name: GetOperationByRef :one
-- GetOperationByRef returns the operation of a public name.
SELECT * FROM operations WHERE status_ref = @status_ref;

-- name: GetOperation :one
-- GetOperation returns an operation by its key.
SELECT * FROM operations WHERE operation_pk = @operation_pk;

-- name: ScopeTaken :one
-- ScopeTaken says whether a scope has an operation or had one, of which it then has
-- the tombstone. One that is pruned meanwhile counts: PostgreSQL would insert in its
-- place, whose tombstone is not in the snapshot. And whether the tool is paused.
SELECT CAST((
    SELECT COUNT(*) FROM operations
    WHERE operations.tenant_id = CAST(@tenant_id AS TEXT) AND operations.subject_id = CAST(@subject_id AS TEXT)
        AND operations.tool_name = CAST(@tool_name AS TEXT) AND operations.idempotency_key = CAST(@idempotency_key AS TEXT)
) + (
    SELECT COUNT(*) FROM tombstones
    WHERE tombstones.tenant_id = CAST(@tenant_id AS TEXT) AND tombstones.subject_id = CAST(@subject_id AS TEXT)
        AND tombstones.tool_name = CAST(@tool_name AS TEXT) AND tombstones.idempotency_key = CAST(@idempotency_key AS TEXT)
) AS BIGINT) AS taken,
(SELECT COUNT(*) FROM paused_tools WHERE paused_tools.tool_name = CAST(@tool_name AS TEXT)) AS paused;

-- name: MoveOperation :execrows
-- MoveOperation changes an operation's state, if every column is still what the
-- caller has read: nothing that was changed past the runtime is overwritten. What
-- has ended is never moved.
UPDATE operations
SET state = @state, updated_at = @updated_at, completed_at = @completed_at,
    reason = @reason, row_digest = @row_digest
WHERE operation_pk = @operation_pk AND row_digest = @from_digest AND state = @from_state
    AND updated_at = @from_updated_at AND completed_at IS NULL AND reason = @from_reason
    AND tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key
    AND request_sha256 = @request_sha256 AND arguments_json = @arguments_json
    AND input_schema_revision = @input_schema_revision AND output_schema_revision = @output_schema_revision
    AND effect_revision = @effect_revision AND handler_revision = @handler_revision
    AND producer_revision = @producer_revision AND policy_revision = @policy_revision
    AND approval_id = @approval_id AND approver_id = @approver_id
    AND approval_digest = @approval_digest AND approval_expires_at = @approval_expires_at
    AND approved_at = @approved_at
    AND first_operation_id = @first_operation_id AND first_call_id = @first_call_id
    AND first_response_id = @first_response_id AND first_provider = @first_provider
    AND first_api_family = @first_api_family AND first_adapter_revision = @first_adapter_revision
    AND status_ref = @status_ref AND created_at = @created_at AND effect_kind = @effect_kind;

-- name: ListOperations :many
-- ListOperations is a page of operations after a key.
SELECT * FROM operations WHERE operation_pk > @after_pk
ORDER BY operation_pk LIMIT CAST(@page AS BIGINT);
