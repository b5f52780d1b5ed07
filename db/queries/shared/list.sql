-- name: ListOldest :many
-- ListOldest is a page of operations after a key, in the order of the keys, each with
-- what its event says.
SELECT operations.operation_pk, operations.status_ref, operations.tenant_id, operations.tool_name, operations.state,
    operations.reason, operations.created_at, operations.updated_at, operations.completed_at,
    outbox.attempt_count, outbox.lease_owner, outbox.next_attempt_at
FROM operations LEFT JOIN outbox ON outbox.operation_pk = operations.operation_pk
WHERE operations.operation_pk > @after_pk
ORDER BY operations.operation_pk LIMIT CAST(@page AS BIGINT);

-- name: ListNewest :many
-- ListNewest is ListOldest the other way.
SELECT operations.operation_pk, operations.status_ref, operations.tenant_id, operations.tool_name, operations.state,
    operations.reason, operations.created_at, operations.updated_at, operations.completed_at,
    outbox.attempt_count, outbox.lease_owner, outbox.next_attempt_at
FROM operations LEFT JOIN outbox ON outbox.operation_pk = operations.operation_pk
WHERE operations.operation_pk < @before_pk
ORDER BY operations.operation_pk DESC LIMIT CAST(@page AS BIGINT);
