package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer is the kube-apiserver of this server: a process of its own, where K3s
// has a goroutine.
type apiServer struct {
	*supervisor
	etcd []string // endpoints
}

func (a *apiServer) args() ([]string, error) {
	l, o := a.store.l, a.store.o
	tokens := l.server("cred", "tokens.csv")
	if err := write(tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", adminToken(a.password))); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + strings.Join(a.etcd, ","),
		"--etcd-cafile=" + l.tls("etcd", "server-ca.crt"), "--etcd-certfile=" + l.tls("etcd", "client.crt"), "--etcd-keyfile=" + l.tls("etcd", "client.key"),
		"--bind-address=" + o.Loopback.String(), fmt.Sprintf("--secure-port=%d", apiPort), "--advertise-address=" + o.NodeIP,
		"--tls-cert-file=" + l.tls("serving-kube-apiserver.crt"), "--tls-private-key-file=" + l.tls("serving-kube-apiserver.key"),
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.tls("service.key"), "--service-account-signing-key-file=" + l.tls("service.key"),
		"--service-cluster-ip-range=10.43.0.0/16", "--enable-priority-and-fairness=false",
		// Nobody makes service accounts here, and nobody looks for the server's endpoints.
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
	}, nil
}

// run runs the process until ctx ends. The kernel ends it with this one.
func (a *apiServer) run(ctx context.Context) error {
	if a.store.o.APIServer == "" {
		return errors.New("kube-apiserver: SUFFRAGE_KUBE_APISERVER names none; --disable-apiserver does without")
	}
	args, err := a.args()
	if err != nil {
		return err
	}
	// The signal is sent when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(a.store.o.APIServer, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer a.serving.Store(false)
	go a.watch(ctx)
	select {
	case err := <-ended:
		return fmt.Errorf("kube-apiserver ended: %w", errors.Join(err, ctx.Err()))
	case <-ctx.Done():
	}
	signal, patience := syscall.SIGTERM, 10*time.Second
	if errors.Is(context.Cause(ctx), errAtOnce) {
		signal = syscall.SIGKILL
	}
	_ = cmd.Process.Signal(signal)
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-ended
	}
	return nil
}

// watch says from when on it is ready.
func (a *apiServer) watch(ctx context.Context) {
	for !a.isReady(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	a.serving.Store(true)
	a.store.log.Info("kube-apiserver is ready")
}

func (a *apiServer) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint(a.store.o.Loopback, apiPort)+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+adminToken(a.password))
	resp, err := a.proxy.Transport.RoundTrip(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// kubeconfig writes the administrator's.
func (a *apiServer) kubeconfig() error {
	ca, err := os.ReadFile(a.store.l.tls("server-ca.crt"))
	if err != nil {
		return err
	}
	cfg := api.NewConfig()
	cfg.Clusters["default"] = &api.Cluster{Server: endpoint(a.store.o.Loopback, supervisorPort), CertificateAuthorityData: ca}
	cfg.AuthInfos["default"] = &api.AuthInfo{Token: adminToken(a.password)}
	cfg.Contexts["default"] = &api.Context{Cluster: "default", AuthInfo: "default"}
	cfg.CurrentContext = "default"
	text, err := clientcmd.Write(*cfg)
	if err != nil {
		return err
	}
	if a.store.o.Kubeconfig != "" {
		if err := write(a.store.o.Kubeconfig, text); err != nil {
			return err
		}
	}
	return write(a.store.l.kubeconfig(), text)
}
