-- What was accepted beside the revisions, and lanes that no name can forge.

-- A column whose value the row's digest covers has no check of its own: every check
-- costs every call.

-- +goose Up

-- What running the operation twice does, as its tool said when it was accepted;
-- empty where it was accepted before this column.
ALTER TABLE operations ADD COLUMN effect_kind text NOT NULL DEFAULT '';

-- A lane is a tool, under the contract of its operations where effect_kind is
-- known, and a tenant, divided by line breaks. A line break in a name is written
-- as \n and a backslash as two: what such names are in is written anew.
UPDATE outbox SET lane = (
    SELECT replace(replace(tool_name, chr(92), chr(92) || chr(92)), chr(10), chr(92) || 'n') || chr(10)
        || replace(replace(tenant_id, chr(92), chr(92) || chr(92)), chr(10), chr(92) || 'n')
    FROM operations WHERE operations.operation_pk = outbox.operation_pk
) WHERE operation_pk IN (
    SELECT operation_pk FROM operations
    WHERE strpos(tool_name, chr(10)) > 0 OR strpos(tool_name, chr(92)) > 0
        OR strpos(tenant_id, chr(10)) > 0 OR strpos(tenant_id, chr(92)) > 0
);

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
