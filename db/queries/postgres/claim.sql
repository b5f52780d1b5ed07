-- name: LockDueInLane :many
-- LockDueInLane is ListDueInLane for a transaction that claims what it lists. It
-- skips what others are claiming, so that many workers share out a lane instead
-- of waiting for each other. Of a paused tool it lists nothing.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND lane = @lane AND next_attempt_at <= @now
    AND NOT EXISTS (SELECT 1 FROM paused_tools WHERE paused_tools.tool_name = @tool_name)
ORDER BY next_attempt_at, operation_pk LIMIT CAST(@page AS BIGINT)
FOR UPDATE SKIP LOCKED;

-- name: GetClaimedMany :many
-- GetClaimedMany is GetClaimed for many operations. The parameter is the text of an array.
SELECT sqlc.embed(operations), sqlc.embed(outbox)
FROM operations JOIN outbox ON outbox.operation_pk = operations.operation_pk
WHERE operations.operation_pk = ANY (CAST(CAST(@pks AS TEXT) AS BIGINT[]));
