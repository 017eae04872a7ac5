package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"suffrage/config"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"suffrage": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScript runs whole sessions: testdata/script/*.txtar. UPDATE_SCRIPTS=1
// rewrites what they expect.
func TestScript(t *testing.T) {
	inputs, err := filepath.Abs("../../membership/testdata/inputs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(e *testscript.Env) error { e.Setenv("INPUTS", inputs); return nil }, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", RequireExplicitExec: true, RequireUniqueNames: true})
}

// The printed example is what the defaults are, key by key.
func TestExampleIsTheDefaults(t *testing.T) {
	want := DefaultSettings()
	want.Host = "h1"
	var got Settings // not the defaults: every key has to be there
	if err := config.Decode("example.yaml", []byte(exampleConfig), &got); err != nil {
		t.Fatal(err)
	}
	// Nothing written and nothing there are the same.
	got.Member.InitialCluster, got.Etcd.Endpoints = want.Member.InitialCluster, want.Etcd.Endpoints
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("example.yaml differs from DefaultSettings (-defaults +example):\n%s", diff)
	}
}
