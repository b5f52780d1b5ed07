package pgstore

import (
	"os"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.SkipExamples()
	os.Exit(pgtest.Main(m))
}
