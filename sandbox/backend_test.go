// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func TestExistingCluster(t *testing.T) {
	cluster := ForTest(t, TestOptions{})
	for name, c := range map[string]struct{ variable, envtest, kubectl, option string }{
		"the variable":         {cluster.KubeconfigPath(), "", "", ""},
		"the variable first":   {cluster.KubeconfigPath(), "true", "/does/not/exist", ""},
		"the envtest variable": {"", "True", cluster.KubeconfigPath() + string(filepath.ListSeparator), ""},
		"the option":           {"", "", "", cluster.KubeconfigPath()},
		"the option first":     {"", "true", "/does/not/exist", cluster.KubeconfigPath()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(KubeconfigVariable, c.variable)
			t.Setenv(envtestVariable, c.envtest)
			t.Setenv("KUBECONFIG", c.kubectl)
			// Without a binary, only the existing cluster can be used.
			t.Setenv(BinaryVariable, "/does/not/exist")
			env := ForTest(t, TestOptions{Options: Options{Kubeconfig: c.option, StartTimeout: 10 * time.Second}})
			if got, want := env.RESTConfig().Host, cluster.RESTConfig().Host; got != want {
				t.Errorf("host is %s, want %s", got, want)
			}
			if env.RESTConfig().QPS != -1 {
				t.Errorf("QPS is %v, want -1", env.RESTConfig().QPS)
			}
			if env.Dir() != "" || env.KubeconfigPath() != cluster.KubeconfigPath() {
				t.Errorf("Dir and KubeconfigPath are %q and %q", env.Dir(), env.KubeconfigPath())
			}
			client := corev1client.NewForConfigOrDie(cluster.RESTConfig())
			if _, err := client.Namespaces().Get(t.Context(), env.Namespace, metav1.GetOptions{}); err != nil {
				t.Errorf("the test's namespace is not in the cluster: %v", err)
			}
			if _, err := client.ServiceAccounts(env.Namespace).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Errorf("the test's namespace has no service account yet: %v", err)
			}
			s, err := Start(t.Context(), Options{Kubeconfig: c.option, Progress: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if s.Err() != nil {
				t.Errorf("Err before Stop: %v", s.Err())
			}
			if err := errors.Join(s.Stop(), s.Stop()); err != nil {
				t.Errorf("Stop: %v", err)
			}
			<-s.Done()
			if !errors.Is(s.Err(), ErrStopped) {
				t.Errorf("Err after Stop: %v", s.Err())
			}
			if _, err := client.Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Errorf("the cluster is not reachable after Stop: %v", err)
			}
		})
	}
}

func TestExistingCluster_byTheVariableOfEnvtest(t *testing.T) {
	for name, c := range map[string]struct{ value, kubectl, want, wantErr string }{
		"not set":       {"", "/a", "", ""},
		"false":         {"false", "/a", "", ""},
		"KUBECONFIG":    {"true", "/a", "/a", ""},
		"default file":  {"TRUE", "", clientcmd.RecommendedHomeFile, ""},
		"several files": {"true", "/a" + string(filepath.ListSeparator) + "/b", "", "must name one file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(KubeconfigVariable, "")
			t.Setenv(envtestVariable, c.value)
			t.Setenv("KUBECONFIG", c.kubectl)
			got, err := existingByVariable()
			if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got %q and error %v, want %q and %q", got, err, c.want, c.wantErr)
			}
		})
	}
}

func TestExistingClusterErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	cluster := ForTest(t, TestOptions{})
	stranger := strings.ReplaceAll(
		kubeconfigFor(cluster.RESTConfig().Host), `"server"`, `"insecure-skip-tls-verify": true, "server"`,
	)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"text": "text", "closed": kubeconfigFor(closed), "stranger": stranger})
	cases := map[string]struct {
		file string
		want []string
	}{
		"no file":        {"missing", []string{"cannot be used", "no such file"}},
		"no kubeconfig":  {"text", []string{"cannot be used"}},
		"no server":      {"closed", []string{"the cluster " + closed, "connection refused"}},
		"no credentials": {"stranger", []string{"the cluster " + cluster.RESTConfig().Host, "Unauthorized"}},
	}
	for name, c := range cases {
		for from, set := range map[string]func(t *testing.T, path string) Options{
			KubeconfigVariable: func(t *testing.T, path string) Options {
				t.Setenv(KubeconfigVariable, path)
				return Options{}
			},
			envtestVariable: func(t *testing.T, path string) Options {
				t.Setenv(KubeconfigVariable, "")
				t.Setenv(envtestVariable, "true")
				t.Setenv("KUBECONFIG", path)
				return Options{}
			},
			"Options.Kubeconfig": func(t *testing.T, path string) Options {
				t.Setenv(KubeconfigVariable, "")
				return Options{Kubeconfig: path}
			},
		} {
			t.Run(name+" by "+from, func(t *testing.T) {
				path := filepath.Join(dir, c.file)
				o := set(t, path)
				o.Progress = io.Discard
				_, err := Start(t.Context(), o)
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range append(c.want, path, from) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error does not contain %q:\n%v", want, err)
					}
				}
			})
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("a kubeconfig was created: %v", err)
	}
}
