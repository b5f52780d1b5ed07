-- name: InsertEvent :exec
-- InsertEvent puts an operation's event into the outbox.
INSERT INTO outbox (
    operation_pk, event_id, payload_json, state, lease_owner, lease_until,
    attempt_count, created_at, updated_at, row_digest
) VALUES (
    @operation_pk, @event_id, @payload_json, @state, @lease_owner, @lease_until,
    @attempt_count, @created_at, @updated_at, @row_digest
);

-- name: GetEvent :one
-- GetEvent returns an operation's event.
SELECT * FROM outbox WHERE operation_pk = @operation_pk;

-- name: MoveEvent :execrows
-- MoveEvent changes an event's state, if it is still in the state and under the
-- fence (attempt_count) that the caller has read.
UPDATE outbox
SET state = @state, lease_owner = @lease_owner, lease_until = @lease_until,
    attempt_count = @attempt_count, updated_at = @updated_at, row_digest = @row_digest
WHERE operation_pk = @operation_pk AND state = @from_state AND attempt_count = @fence
    AND row_digest = @from_digest;

-- name: ListOrphanEvents :many
-- ListOrphanEvents is a page of events after a key that have no operation.
SELECT * FROM outbox
WHERE outbox.operation_pk > @after_pk
    AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.operation_pk = outbox.operation_pk)
ORDER BY outbox.operation_pk LIMIT CAST(@page AS BIGINT);
