package endpoint

import (
	"testing"

	"go.uber.org/goleak"

	"suffrage/member/membertest"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}
