// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestWhatHasTheAPIServerAnswered shows the log of a test that fails: its requests and requests of controllers for its
// objects, but not requests of another test in the same control plane.
func TestWhatHasTheAPIServerAnswered(t *testing.T) {
	t.Setenv(KubeconfigVariable, "")
	o := TestOptions{LogRequests: true}
	other := ForTest(t, o)
	r := &recorder{TB: t, name: "TestFails"}
	namespace := ""
	r.run(func(r testing.TB) {
		e := ForTest(r, o)
		if e.RESTConfig().Host != other.RESTConfig().Host {
			t.Error("two tests with the same options have two control planes")
		}
		namespace = e.Namespace
		createConfigMaps(t, corev1client.NewForConfigOrDie(other.RESTConfig()).ConfigMaps(other.Namespace), 1)
		createConfigMaps(t, corev1client.NewForConfigOrDie(e.RESTConfig()).ConfigMaps(e.Namespace), 2)
		// A response that says why, of a user without rights.
		alice := corev1client.NewForConfigOrDie(e.User(t, "alice").RESTConfig())
		if _, err := alice.ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("a user without rights lists objects")
		}
		admin := kubernetes.NewForConfigOrDie(e.RESTConfig())
		if _, err := admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "image"}}
		_, err := admin.AppsV1().Deployments(e.Namespace).Create(t.Context(), deployment, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "a pod runs", func() bool {
			pods, err := admin.CoreV1().Pods(e.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
			return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning
		})
		r.Error("it fails")
	})
	log := strings.Join(r.logs, "\n")
	t.Logf("the log of the test:\n%s", log)
	if strings.Contains(log, other.Namespace) {
		t.Errorf("requests of another test in the namespace %s are in the log:\n%s", other.Namespace, log)
	}
	stamp := `(?m)^\d\d:\d\d:\d\d\.\d{3}  `
	for what, pattern := range map[string]string{
		"a write":         `create +configmaps +NAMESPACE/a +trueup-admin +201 $`,
		"a failed write":  `create +configmaps +NAMESPACE/a +trueup-admin +409 AlreadyExists$`,
		"a denied list":   `list +configmaps +NAMESPACE +alice +403 Forbidden$`,
		"a cluster scope": `list +nodes +trueup-admin +200 $`,
		"a controller":    `create +pods +NAMESPACE/web-\S+-\* +system:kube-controller-manager +201 $`,
		"a subresource":   `update +deployments\.apps/status +NAMESPACE/web +system:kube-controller-manager +200 $`,
		"the end":         `delete +namespaces +NAMESPACE +trueup-admin +200 $`,
	} {
		if !regexp.MustCompile(stamp + strings.ReplaceAll(pattern, "NAMESPACE", namespace)).MatchString(log) {
			t.Errorf("%s is not in the log: %s", what, pattern)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "trueup-audit-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %q, error %v", left, err)
	}
}

// createConfigMaps creates the same object the given number of times.
func createConfigMaps(t *testing.T, client corev1client.ConfigMapInterface, times int) {
	t.Helper()
	for i := range times {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); (err != nil) != (i > 0) {
			t.Errorf("creation %d: error %v", i+1, err)
		}
	}
}

func TestRequestLogEvents(t *testing.T) {
	const (
		mine      = `{"auditID":"1","verb":"get","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"n"}}`
		otherTest = `{"auditID":"2","verb":"get","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"o"}}`
		control   = `{"auditID":"3","verb":"list","user":{"username":"system:apiserver"},"objectRef":{"resource":"pods"}}`
		path      = `{"auditID":"4","verb":"get","requestURI":"/metrics","user":{"username":"u"}}`
		cut       = `{"auditID":"5","verb":"g`
	)
	file, err := os.Create(filepath.Join(t.TempDir(), "audit"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	writeAudit(t, file, mine)
	log, err := newRequestLog(file, "n")
	if err != nil {
		t.Fatal(err)
	}
	if got := log.events(); len(got) > 0 {
		t.Errorf("requests before the test are in its log: %+v", got)
	}
	writeAudit(t, file, mine, otherTest, control, mine, path, cut)
	got := []string{}
	for _, e := range log.events() {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff([]string{"1", "4"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func writeAudit(t *testing.T, file io.Writer, lines ...string) {
	t.Helper()
	if _, err := io.WriteString(file, strings.Join(lines, "\n")); err != nil {
		t.Fatal(err)
	}
}

func TestRequestTable(t *testing.T) {
	got := table(make([]auditEvent, maxLoggedRequests+1))
	if !strings.HasPrefix(got, "(1 earlier ones are not shown)\n") || strings.Count(got, "\n") != 1+maxLoggedRequests {
		t.Errorf("got %d lines, first %.40q", strings.Count(got, "\n"), got)
	}
	if got := table(nil); got != "" {
		t.Errorf("without requests: %q", got)
	}
}

func TestOpenAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for name, c := range map[string]struct {
		o         Options
		inherited int
	}{
		"a file of the user stays": {Options{AuditLog: path}, 0},
		"no name by default":       {Options{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			audit, inherited, err := openAuditLog(&c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = audit.Close() }()
			if len(inherited) != c.inherited || (c.o.AuditLog == inheritedFile) != (c.inherited > 0) {
				t.Errorf("%d inherited files, audit log %s", len(inherited), c.o.AuditLog)
			}
			if _, err := os.Stat(audit.Name()); os.IsNotExist(err) != (c.inherited > 0) {
				t.Errorf("the file %s: %v", audit.Name(), err)
			}
		})
	}
	_, err := startLogging(t.Context(), Options{Backend: Memory})
	if want := "LogRequests: the API in memory has no audit log"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the API in memory: error %v, want %q in it", err, want)
	}
}
