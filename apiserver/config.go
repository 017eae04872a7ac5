package apiserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"suffrage/config"
)

// Config is how the API server is reached.
type Config struct {
	// Namespace is the one that the Lease is in. It has to exist, and to be the
	// same on every host: two namespaces are two Leases.
	Namespace string `yaml:"namespace"`
	// Kubeconfig is a file as kubectl reads it; its current context is used.
	// Empty: the service account of the pod that this runs in.
	Kubeconfig string `yaml:"kubeconfig"`
}

// DefaultConfig is the namespace of deploy/kubernetes.
func DefaultConfig() Config { return Config{Namespace: "suffrage"} }

// Validate gives every problem with its key.
func (c Config) Validate() error {
	var errs []error
	if why := validation.IsDNS1123Label(c.Namespace); why != nil {
		errs = append(errs, config.Problem{Key: "namespace", Found: strconv.Quote(fmt.Sprintf("%.80s", c.Namespace)), Allowed: "the name of a namespace: " + why[0]})
	}
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		errs = append(errs, config.Problem{Key: "kubeconfig", Found: strconv.Quote(c.Kubeconfig), Allowed: "an absolute path"})
	}
	return errors.Join(errs...)
}

// Server is the one that the settings name.
func (c Config) Server() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("apiserver: kubernetes.kubeconfig is empty, and this is no pod with a service account: %w", err)
		}
		return cfg, nil
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("apiserver: kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return cfg, nil
}
