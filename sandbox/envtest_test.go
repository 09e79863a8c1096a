// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A suite that uses envtest runs with the commands without changes.
func TestEnvtest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts envtest: with -short, TestFromEnvtest_assets in docs does")
	}
	dir, err := EnvtestAssets(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("KUBEBUILDER_ASSETS", "") // restored at the end
	if err := os.Unsetenv("KUBEBUILDER_ASSETS"); err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: dir,
		CRDDirectoryPaths:     []string{"../examples/website/config/crd/bases"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{denyConfigMaps()},
		},
	}
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysPullImages")
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("version", func(t *testing.T) { checkEnvtestVersion(t, dir, config) })
	t.Run("flags", func(t *testing.T) { checkEnvtestFlag(t, config) })
	t.Run("webhooks", func(t *testing.T) { checkEnvtestWebhook(t, env, config) })
	t.Run("users", func(t *testing.T) { checkEnvtestUser(t, env) })
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files after Stop: %v, error %v", left, err)
	}
}

func checkEnvtestVersion(t *testing.T, dir string, config *rest.Config) {
	info, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kube-apiserver"), "--version").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	want := "Kubernetes " + info.GitVersion + "\n"
	if string(printed) != want || strings.HasPrefix(info.GitVersion, "v0") {
		t.Errorf("kube-apiserver --version prints %q, the API reports %s", printed, info.GitVersion)
	}
}

func checkEnvtestFlag(t *testing.T, config *rest.Config) {
	pod, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i", ImagePullPolicy: corev1.PullNever}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.Containers[0].ImagePullPolicy; got != corev1.PullAlways {
		t.Errorf("the pull policy is %s: the admission plugin of the flag is not used", got)
	}
}

func checkEnvtestWebhook(t *testing.T, env *envtest.Environment, config *rest.Config) {
	o := env.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{
		Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir,
	})
	deny := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Denied("denied by the suite")
	})
	server.Register("/deny", &admission.Webhook{Handler: deny})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	eventually(t, 30*time.Second, "the webhook denies", func() bool {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "denied by the suite")
	})
}

func denyConfigMaps() *admissionregistrationv1.ValidatingWebhookConfiguration {
	none, path := admissionregistrationv1.SideEffectClassNone, "/deny"
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "deny"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "deny.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "webhooks", Path: &path},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
}

func checkEnvtestUser(t *testing.T, env *envtest.Environment) {
	user, err := env.AddUser(envtest.User{Name: "alice", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(user.Config())
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"readers", "system:authenticated"}
	if got := review.Status.UserInfo; got.Username != "alice" || !cmp.Equal(got.Groups, want) {
		t.Errorf("the user is %q in groups %q, want alice in %q", got.Username, got.Groups, want)
	}
	if _, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: error %v, want forbidden", err)
	}
}

// If a suite is killed, envtest cannot stop its processes: they detect it themselves.
func TestEnvtest_killed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills envtest: with -short, the directory of its commands is tested")
	}
	dir, err := EnvtestAssets(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	suite := exec.CommandContext(t.Context(), self)
	suite.Env = append(os.Environ(), roleVariable+"=envtest", "KUBEBUILDER_ASSETS="+dir, "TMPDIR="+temporary)
	suite.Stderr = os.Stderr
	stdout, err := suite.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: strings.TrimSpace(line), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client := kubernetes.NewForConfigOrDie(config).Discovery().RESTClient()
	if err := client.Get().AbsPath("/healthz").Do(t.Context()).Error(); err != nil {
		t.Fatalf("before the kill: %v", err)
	}
	if err := suite.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = suite.Wait()
	eventually(t, 20*time.Second, "no directories are left", func() bool {
		left, err := filepath.Glob(filepath.Join(temporary, "k8s_test_framework_*"))
		return err == nil && len(left) == 0
	})
	eventually(t, 20*time.Second, "kube-apiserver has ended", func() bool {
		err := client.Get().AbsPath("/healthz").Do(t.Context()).Error()
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
}

// envtestSuite is a suite that never ends.
func envtestSuite() int {
	config, err := (&envtest.Environment{}).Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(config.Host)
	select {}
}

func TestEnvtestAssets_links(t *testing.T) {
	parent, programs := filepath.Join(t.TempDir(), "a cache"), t.TempDir()
	writeFiles(t, programs, map[string]string{"one": "", "two": "", "kubectl": ""})
	if err := os.Chmod(filepath.Join(programs, "kubectl"), 0o700); err != nil {
		t.Fatal(err)
	}
	made := func(binary, path string) string {
		t.Helper()
		t.Setenv("PATH", path)
		dir, err := linkEnvtestCommands(parent, filepath.Join(programs, binary))
		if err != nil {
			t.Fatal(err)
		}
		links := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if links[entry.Name()], err = os.Readlink(filepath.Join(dir, entry.Name())); err != nil {
				t.Error(err)
			}
		}
		want := map[string]string{"etcd": filepath.Join(programs, binary), "kube-apiserver": filepath.Join(programs, binary)}
		if path != "" {
			want["kubectl"] = filepath.Join(programs, "kubectl")
		}
		if diff := cmp.Diff(want, links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		return dir
	}
	one := made("one", programs)
	if again := made("one", one+string(filepath.ListSeparator)+programs); again != one {
		t.Errorf("the second time the directory is %s, want %s", again, one)
	}
	made("one", "")
	if two := made("two", ""); two == one {
		t.Error("two binaries have one directory")
	}
	if err := os.Remove(filepath.Join(programs, "one")); err != nil {
		t.Fatal(err)
	}
	made("two", "")
	if _, err := os.Stat(one); !os.IsNotExist(err) {
		t.Errorf("the directory of a removed binary still exists, error %v", err)
	}
}

func TestEnvtestAssets_noBinary(t *testing.T) {
	withoutVariables(t)
	_, err := EnvtestAssets(t.Context(), Options{Binary: "/does/not/exist", Progress: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "Options.Binary") {
		t.Errorf("error %v, want one about Options.Binary", err)
	}
}
