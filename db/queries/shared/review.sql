-- name: InsertResolution :exec
-- InsertResolution records what a person has decided.
INSERT INTO resolutions (operation_pk, seq, decision, actor, reason, decided_at, row_digest)
VALUES (@operation_pk, @seq, @decision, @actor, @reason, @decided_at, @row_digest);

-- name: ListResolutions :many
-- ListResolutions returns what was decided about an operation, in order.
SELECT * FROM resolutions WHERE operation_pk = @operation_pk ORDER BY seq;

-- name: ListInReview :many
-- ListInReview is a page of operations after a key that wait for a person.
SELECT * FROM operations WHERE state = 'in_review' AND operation_pk > @after_pk
ORDER BY operation_pk LIMIT CAST(@page AS BIGINT);

-- name: PauseTool :execrows
-- PauseTool pauses a tool, unless it is paused.
INSERT INTO paused_tools (tool_name, actor, reason, paused_at, row_digest)
VALUES (@tool_name, @actor, @reason, @paused_at, @row_digest) ON CONFLICT DO NOTHING;

-- name: GetPausedTool :one
-- GetPausedTool returns the pause that holds a tool.
SELECT * FROM paused_tools WHERE tool_name = @tool_name;

-- name: IsPaused :one
-- IsPaused counts the pauses that hold a tool: none, or one.
SELECT COUNT(*) FROM paused_tools WHERE tool_name = @tool_name;

-- name: ResumeTool :execrows
-- ResumeTool ends a pause, if it is as the caller has read it.
DELETE FROM paused_tools WHERE tool_name = @tool_name
    AND actor = @actor AND reason = @reason AND paused_at = @paused_at AND row_digest = @row_digest;

-- name: ListPausedTools :many
-- ListPausedTools returns the tools that are paused.
SELECT * FROM paused_tools ORDER BY tool_name;

-- name: InsertPastPause :exec
-- InsertPastPause keeps a pause that has ended.
INSERT INTO past_pauses (tool_name, seq, actor, reason, paused_at, resumed_by, resume_reason, resumed_at, row_digest)
VALUES (@tool_name, @seq, @actor, @reason, @paused_at, @resumed_by, @resume_reason, @resumed_at, @row_digest);

-- name: LastPastPause :one
-- LastPastPause returns how many pauses of a tool have ended.
SELECT CAST(COALESCE(MAX(seq), 0) AS BIGINT) AS seq FROM past_pauses WHERE tool_name = @tool_name;

-- name: ListPastPauses :many
-- ListPastPauses is a page of the pauses that have ended, after one of them.
SELECT * FROM past_pauses WHERE (tool_name, seq) > (CAST(@tool_name AS TEXT), CAST(@seq AS BIGINT))
ORDER BY tool_name, seq LIMIT CAST(@page AS BIGINT);

-- name: CountPauses :one
-- CountPauses counts the pauses that there are, beside the number that there should be.
SELECT CAST((SELECT COUNT(*) FROM past_pauses) + (SELECT COUNT(*) FROM paused_tools) AS BIGINT) AS found, CAST(COALESCE((
    SELECT metadata_value FROM runtime_metadata WHERE metadata_key = 'pauses'
), '') AS TEXT) AS counted;

-- name: AddPauses :execrows
-- AddPauses counts pauses that are inserted in the same transaction.
UPDATE runtime_metadata SET metadata_value = CAST(CAST(metadata_value AS BIGINT) + CAST(@added AS BIGINT) AS TEXT)
WHERE metadata_key = 'pauses';

-- name: CountOpenEvents :many
-- CountOpenEvents counts what is not done, by lane and state: events, how often
-- they were attempted, and of how many the lease has run out without a word.
SELECT lane, state, COUNT(*) AS events, CAST(MIN(created_at) AS BIGINT) AS oldest,
    CAST(SUM(attempt_count) AS BIGINT) AS attempts,
    CAST(SUM(CASE
        WHEN outbox.state = 'processing' AND outbox.next_attempt_at <= CAST(@now AS BIGINT) AND NOT EXISTS (
            SELECT 1 FROM attempts
            WHERE attempts.operation_pk = outbox.operation_pk AND attempts.attempt = outbox.attempt_count
        ) THEN 1 ELSE 0 END) AS BIGINT) AS expired
FROM outbox WHERE state IN ('pending', 'processing') GROUP BY lane, state ORDER BY lane, state;

-- name: CountLostAttempts :many
-- CountLostAttempts counts the attempts whose lease ran out without a word, by
-- tool.
SELECT CAST(COALESCE((
        SELECT tool_name FROM operations WHERE operations.operation_pk = attempts.operation_pk
    ), '') AS TEXT) AS tool_name,
    COUNT(*) AS lost
FROM attempts WHERE outcome = 'lost' GROUP BY 1 ORDER BY 1;

-- name: CountInReview :many
-- CountInReview counts what waits for a person, by tool and reason.
SELECT tool_name, reason, COUNT(*) AS operations, CAST(MIN(updated_at) AS BIGINT) AS oldest
FROM operations WHERE state = 'in_review' GROUP BY tool_name, reason ORDER BY tool_name, reason;
