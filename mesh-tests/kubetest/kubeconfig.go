package kubetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Kubeconfig writes a user's kubeconfig and gives its path.
func (s *Server) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	cfg := api.NewConfig()
	cfg.Clusters["kubetest"] = &api.Cluster{Server: s.Config(user).Host, CertificateAuthorityData: s.ca}
	cfg.AuthInfos["user"] = &api.AuthInfo{Token: token(user)}
	cfg.Contexts["kubetest"] = &api.Context{Cluster: "kubetest", AuthInfo: "user"}
	cfg.CurrentContext = "kubetest"
	text, err := clientcmd.Write(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Apply creates the objects of a manifest, as Admin, and gives them as JSON by
// their paths.
func (s *Server) Apply(t testing.TB, file string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]byte{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		object, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var o meta.PartialObjectMetadata
		if err := json.Unmarshal(object, &o); err != nil {
			t.Fatal(err)
		}
		path, known := paths[o.Kind]
		if !known {
			t.Fatalf("%s has a %s, which is not known here", file, o.Kind)
		}
		path = strings.Replace(path, "NS", o.Namespace, 1)
		s.Create(t, path, string(object))
		made[path+"/"+o.Name] = object
	}
	return made
}

var paths = map[string]string{
	"Namespace":          "/api/v1/namespaces",
	"ServiceAccount":     "/api/v1/namespaces/NS/serviceaccounts",
	"Role":               "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles",
	"ClusterRole":        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"RoleBinding":        "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings",

	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
