package history

import (
	"errors"
	"os"
	"testing"
)

// Judge fails a test in which writes failed, a write was lost, or nothing was
// written or what was written last was not read, so that nothing was proven. A
// History that was judged bad is kept in dir, where "" is the directory for
// temporary files.
func Judge(t testing.TB, h History, seen Writes, dir string) {
	t.Helper()
	judge(t, h, seen, dir, errors.Join(Check(h), CheckReads(h)))
}

// JudgeOutlived is Judge where the fleet ended before its clients did, so that what
// was written last could not be read.
func JudgeOutlived(t testing.TB, h History, seen Writes, dir string) {
	t.Helper()
	judge(t, h, seen, dir, Check(h))
}

func judge(t testing.TB, h History, seen Writes, dir string, err error) {
	t.Helper()
	t.Logf("clients: %d operations, %+v", len(h), seen)
	if seen.Acknowledged == 0 {
		t.Error("no write was acknowledged: nothing was proven")
	}
	if seen.Failed > 0 {
		t.Errorf("%d writes failed: no try within ten seconds carried them out", seen.Failed)
	}
	if err == nil {
		return
	}
	t.Error(err)
	file, err := os.CreateTemp(dir, "suffrage-history-*.jsonl")
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	if err := h.Write(file); err != nil {
		t.Error(err)
	}
	t.Logf("judge it again: go test ./mesh-tests/history -run TestJudge -v -args %s", file.Name())
}
