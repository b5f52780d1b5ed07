package pgstore

import (
	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// errOver says that code of the host's has ended the transaction.
var errOver error = &toolresult.InputError{Field: "tx", Rule: "must not be ended by whom it was lent to: " +
	"what was done before is as that has left it, and nothing was done after it"}

// over is errOver where there is no transaction on a connection that is there.
func over(conn *sql.Conn) (err error) {
	_ = conn.Raw(func(c any) error {
		if pg := c.(*stdlib.Conn).Conn().PgConn(); !pg.IsClosed() && pg.TxStatus() == 'I' {
			err = errOver
		}
		return nil
	})
	return err
}
