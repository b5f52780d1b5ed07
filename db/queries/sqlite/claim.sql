-- name: LockDueInLane :many
-- LockDueInLane is ListDueInLane for a transaction that claims what it lists.
-- PostgreSQL's skips what others are claiming; here nobody else can be. Of a paused
-- tool it lists nothing.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND lane = @lane AND next_attempt_at <= @now
    AND NOT EXISTS (SELECT 1 FROM paused_tools WHERE paused_tools.tool_name = @tool_name)
ORDER BY next_attempt_at, operation_pk LIMIT CAST(@page AS BIGINT);
