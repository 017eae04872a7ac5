package k3s_test

import (
	"testing"

	"suffrage/mesh-tests/k3s"
)

func TestFleetForms(t *testing.T) {
	k3s.New(t, k3s.Options{Split: true, Env: k3s.Quick, Config: k3s.QuickETCD})
}
