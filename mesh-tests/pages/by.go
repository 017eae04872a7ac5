package pages

import (
	"slices"
	"strings"
)

// Tests that take their commands from the pages.
const (
	Run        = "TestDocsRun"        // cmd/suffrage, in make fleet: on a fleet of the demo's
	Install    = "TestDocsInstall"    // cmd/suffrage, in make fleet: on four directories
	Hosts      = "TestPages"          // mesh-tests/systemd: on booted hosts
	K3sHost    = "TestK3sStandby"     // mesh-tests/systemd: on a booted host with K3s's units
	Kubernetes = "TestKubernetesPage" // cmd/suffrage, in make kube-test: with a real API server
	Go         = "TestDocsGo"         // cmd/suffrage, in make fleet
)

// Stage is a command that .ci/run gives as it stands.
const Stage = ".ci/run"

// no begins the reason why nothing runs a command.
const no = "not: "

// byPage says who runs all that a page shows, but for what byCommand says.
var byPage = map[string]string{
	"docs/tutorial.md":      Run,
	"docs/howto.md":         Run,
	"docs/inputs.md":        Run,
	"docs/report.md":        Run,
	"docs/snapshots.md":     Run,
	"docs/swap.md":          Run,
	"docs/install.md":       Install,
	"docs/identity.md":      Install,
	"docs/endpoint.md":      Hosts,
	"docs/recovery.md":      Hosts,
	"docs/k3s-recovery.md":  Hosts,
	"docs/k3s-install.md":   K3sHost,
	"docs/observability.md": Hosts,
	"docs/page.md":          Hosts,
	"docs/kubernetes.md":    Kubernetes,

	"deploy/examples/three-plus-two/README.md": Kubernetes,
	"docs/reference/commands.md":               no + "it is the program's own --help, whose examples are parsed",
}

const (
	putsInPlace = Hosts // as root, on hosts that are thrown away
	fromHost    = Install + " " + Hosts
	byHand      = no + "it takes minutes, and is for figures of a quiet machine: docs/performance.md has those of the last time"
)

// byCommand says it of single commands, wherever they are shown.
var byCommand = map[string]string{
	"make demo":                  Stage,
	"make test":                  Stage,
	"make bench":                 Stage,
	"make systemd":               Stage,
	"make page-test":             Stage,
	"make prometheus":            Stage,
	"make kube-test":             Stage,
	"make k3s-test":              Stage,
	"make compat":                Stage,
	"make tailscale-test":        Stage,
	"make mesh":                  no + "all of it takes longer than a CI run may; .ci/run does a choice of it",
	"make mesh RUN=TestSlowLink": no + "as make mesh; .ci/run has this scenario in its choice",
	"K3S_BIN=/usr/local/bin/k3s make k3s-test":                                           no + "there is no K3s here",
	"make bench-swap":                                                                    byHand,
	"SUFFRAGE_AGENT_COST=4m go test -run TestAgentCost -v ./agent":                       byHand,
	"go test -run '^$' -bench . ./agent ./probes":                                        Go,
	"go test -run '^$' -bench Month ./report":                                            Go,
	"go test ./mesh-tests/record -run TestJudge -v -args DIRECTORY":                      Go,
	"go test ./mesh-tests/history -run TestJudge -v -args FILE":                          Go,
	"tc qdisc add dev eth0 root netem delay 75ms; sleep 900; tc qdisc del dev eth0 root": no + "this kernel has no netem",

	// Another release of etcd.
	"mkdir /tmp/old && cp mesh-tests/etcd35/main.go /tmp/old && cd /tmp/old":    otherRelease,
	"go mod init old && go get go.etcd.io/etcd/server/v3/etcdmain@v3.5.21":      otherRelease,
	"go build -o /tmp/etcd-3.5.21 . && cd -":                                    otherRelease,
	"SUFFRAGE_ETCD_35=/tmp/etcd-3.5.21 go test -count=1 -v ./mesh-tests/compat": otherRelease,

	// Any etcd.
	"go build -o suffrage ./cmd/suffrage": Run,
	"./suffrage observe --endpoints https://10.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key":                                                                                                        Run,
	"suffrage observe --endpoints https://10.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key":                                                                                                          Run,
	"suffrage observe --endpoints http://127.0.0.1:2379 --for 10s":                                                                                                                                                   Run,
	"sudo suffrage observe --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt --key /etc/kubernetes/pki/etcd/healthcheck-client.key": Run,
	"curl -sfL https://get.k3s.io | sudo INSTALL_K3S_SKIP_DOWNLOAD=true INSTALL_K3S_SKIP_START=true INSTALL_K3S_SKIP_ENABLE=true K3S_URL=https://ADDRESS:6443 K3S_TOKEN=TOKEN sh -s - agent":                         noK3s,
	"k3s server --cluster-reset":                                   noK3s,
	"k3s server --cluster-reset --cluster-reset-restore-path=FILE": noK3s,
	"./suffrage observe --k3s":                                     noK3s,
	"sudo suffrage observe --k3s":                                  noK3s,

	// The fleet that the tutorial's commands are given to.
	"./suffrage demo --dir /tmp/fleet --until stopped --slow h3=0s --stall-time 10s --mode dry-run": "newOwnersFleet",
	`suffrage() { ./suffrage "$@" --config /tmp/fleet/h1/suffrage.yaml; }`:                          "typed",
	`suffrage target 5 --reason "two racks" --yes`:                                                  "TestFleetGrowsAndShrinks",
	`suffrage target 5 --reason "room for two failures"`:                                            "TestFleetGrowsAndShrinks",
	"suffrage remove-dead h3":    "TestFleetLosesAHost",
	"suffrage qualify --for 24h": "TestFleetInTrouble",

	// As docs/k3s-install.md has them: whoever runs etcd, they are the same.
	"sudo suffrage status":                                        Run,
	"sudo suffrage mode":                                          Run,
	"sudo suffrage plan":                                          Run,
	"sudo suffrage host eligible h1":                              Run,
	"sudo suffrage host eligible h2":                              Run,
	"sudo suffrage host eligible h3":                              Run,
	`sudo suffrage host eligible h4 --reason "wired, SSD"`:        Run,
	`sudo suffrage host pin h1 --reason "the server in the rack"`: Run,

	// Within runbooks.
	"suffrage remove-dead HOST":                "TestFleetLosesAHost",
	"suffrage target 3":                        "TestFleetLosesAHost",
	"suffrage operations stop ID":              "TestFleet",
	"suffrage swap HOST OTHER":                 "TestSwapAskedFor",
	"curl -s http://ADDRESS:7402/livez":        Run,
	"systemctl enable --now systemd-timesyncd": no + "the booted hosts share one clock, and have no such package",
	"etcdctl member list":                      noEtcdctl,

	// What changes the host.
	"sudo install -d -o suffrage -g suffrage -m 0750 /etc/suffrage":                     putsInPlace,
	"sudo suffrage standby prepare --dry-run":                                           putsInPlace + " " + K3sHost,
	"sudo suffrage standby prepare":                                                     putsInPlace + " TestStandby " + K3sHost,
	"sudo suffrage standby check":                                                       putsInPlace + " TestStandby " + K3sHost,
	"sudo suffrage standby remove":                                                      "TestStandby",
	"sudo install -m 0755 suffrage /usr/local/bin/suffrage":                             putsInPlace + " " + K3sHost,
	"sudo useradd --system --home /var/lib/suffrage --shell /usr/sbin/nologin suffrage": putsInPlace,
	"systemctl daemon-reload":                                                           putsInPlace,
	"sudo systemctl enable --now suffrage-agent":                                        fromHost + " " + K3sHost,
	"sudo -u suffrage suffrage host eligible h1":                                        fromHost,
	"sudo -u suffrage suffrage host eligible h2":                                        fromHost,
	"sudo -u suffrage suffrage host eligible h3":                                        fromHost,
	"sudo systemctl enable --now suffrage-member suffrage-controller":                   fromHost,
	`sudo journalctl -u suffrage-controller -g "decision changed"`:                      putsInPlace,
	"sudo apt-get install --no-install-recommends polkitd":                              putsInPlace,
	"sudo systemctl restart suffrage-agent":                                             putsInPlace,
	"ln -s suffrage /usr/local/bin/kubectl-suffrage":                                    putsInPlace,
	"ln -s suffrage /usr/local/bin/kubectl_complete-suffrage":                           putsInPlace,
	"for u in agent member controller; do\ninstall -D -m 0644 tailscale.conf /etc/systemd/system/suffrage-$u.service.d/tailscale.conf\ndone": putsInPlace,
	"kubectl apply -k deploy/kubernetes-k3s": Kubernetes,

	"promtool check config /etc/prometheus/prometheus.yml": "TestPromtool",
	"ssh -L 7403:127.0.0.1:7403 h1":                        no + "the hosts here have no ssh server; the page behind it is what make page-test looks at",
	"k3s server --datastore-endpoint=https://127.0.0.1:2379 --datastore-cafile=/etc/suffrage/ca.crt --datastore-certfile=/etc/suffrage/datastore.crt --datastore-keyfile=/etc/suffrage/datastore.key": noK3s,
	"export ETCDCTL_ENDPOINTS=https://h1:2379,https://h2:2379,https://h3:2379":                                          noEtcdctl,
	"export ETCDCTL_CACERT=/etc/suffrage/ca.crt ETCDCTL_CERT=/etc/suffrage/host.crt ETCDCTL_KEY=/etc/suffrage/host.key": noEtcdctl,
	"etcdctl endpoint status --cluster -w table":                                                                        noEtcdctl,
}

const (
	noK3s        = no + "there is no K3s here; tests read its files, and have the flags that suffrage prints"
	noEtcdctl    = no + "etcdctl is no part of this"
	otherRelease = no + "the same is done for the releases of etcd that are tested: mesh-tests/etcd.sh"
)

// By says who runs a command: the name of one test or more, a stage of .ci/run, or the
// reason why nobody does; nothing where nobody has said.
func By(c Command) string {
	if by := byCommand[c.Text]; by != "" {
		return by
	}
	if by := byPage[c.Page]; by != "" {
		return by
	}
	if strings.HasPrefix(c.Page, "docs/runbooks/") {
		if strings.HasPrefix(c.Text, "suffrage ") {
			return Run
		}
		return Hosts
	}
	return ""
}

// RunBy reports whether a test is one of those that run a command.
func (c Command) RunBy(test string) bool { return slices.Contains(strings.Fields(By(c)), test) }

// Not gives the reason why a command is not run.
func Not(c Command) (reason string, is bool) { return strings.CutPrefix(By(c), no) }

// Named are all commands that byCommand has.
func Named() map[string]string { return byCommand }
