-- name: GetTombstoneByRef :one
-- GetTombstoneByRef returns the tombstone of a public name.
SELECT * FROM tombstones WHERE status_ref = @status_ref;

-- name: ListTombstones :many
-- ListTombstones is a page of tombstones after a public name.
SELECT * FROM tombstones WHERE status_ref > @after
ORDER BY status_ref LIMIT CAST(@page AS BIGINT);

-- name: InsertTombstone :execrows
-- InsertTombstone takes a scope for good, unless it has a tombstone.
INSERT INTO tombstones (
    tenant_id, subject_id, tool_name, idempotency_key, status_ref, state,
    request_sha256, created_at, completed_at, pruned_at, row_digest
) VALUES (
    @tenant_id, @subject_id, @tool_name, @idempotency_key, @status_ref, @state,
    @request_sha256, @created_at, @completed_at, @pruned_at, @row_digest
) ON CONFLICT DO NOTHING;

-- name: ListAges :many
-- ListAges is a page of what says whether an operation may be pruned.
SELECT operation_pk, tool_name, state, created_at, completed_at FROM operations
WHERE operation_pk > @after_pk ORDER BY operation_pk LIMIT CAST(@page AS BIGINT);

-- name: NewestOperation :one
-- NewestOperation returns the largest key of an operation, or 0.
SELECT CAST(COALESCE(MAX(operation_pk), 0) AS BIGINT) AS operation_pk FROM operations;

-- name: DeleteAttempts :execrows
-- DeleteAttempts removes the attempts of an operation that is pruned.
DELETE FROM attempts WHERE operation_pk = @operation_pk;

-- name: DeleteResolutions :execrows
-- DeleteResolutions removes the decisions on an operation that is pruned.
DELETE FROM resolutions WHERE operation_pk = @operation_pk;

-- name: DeleteRejectedReceipts :execrows
-- DeleteRejectedReceipts removes the rejected answers to an operation that is pruned.
DELETE FROM rejected_receipts WHERE operation_pk = @operation_pk;

-- name: DeleteLocalReceipt :execrows
-- DeleteLocalReceipt removes the accepted receipt of an operation that is pruned.
DELETE FROM local_receipts WHERE operation_pk = @operation_pk;

-- name: DeleteDownstreamReceipt :execrows
-- DeleteDownstreamReceipt removes the observed receipt of an operation that is pruned.
DELETE FROM downstream_receipts
WHERE tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key;

-- name: DeleteEvent :execrows
-- DeleteEvent removes the event of an operation that is pruned, if it is as the
-- caller has read it.
DELETE FROM outbox WHERE operation_pk = @operation_pk AND row_digest = @row_digest;

-- name: DeleteOperation :execrows
-- DeleteOperation removes an operation that has ended, if it is as the caller has
-- read it. The newest one stays: SQLite would give its key to the next.
DELETE FROM operations
WHERE operations.operation_pk = @operation_pk AND operations.state = @state AND operations.row_digest = @row_digest
    AND operations.state IN ('succeeded', 'failed')
    AND operations.operation_pk < (SELECT MAX(newest.operation_pk) FROM operations AS newest);
