// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"trueup.dev/internal/memapi/apiserver"
)

// start starts a server for a test.
func start(t *testing.T, o apiserver.Options) *apiserver.Server {
	t.Helper()
	s, err := apiserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestServer_leavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := s.RESTConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	config = &rest.Config{Host: config.Host, Transport: transport}
	events, err := clientOf(t, config).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.KubeconfigPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v; want mode 0600", info, err)
	}
	if s.Err() != nil {
		t.Errorf("error of a running server: %v", s.Err())
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	for range events.ResultChan() { // until the server has ended the watch
	}
	<-s.Done()
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory still exists: %v", err)
	}
	if err := clientOf(t, config).RESTClient().Get().AbsPath("/healthz").Do(t.Context()).Error(); err == nil {
		t.Error("want an error of a stopped server")
	}
	if idle, ok := transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

func TestServer_keepsGivenDir(t *testing.T) {
	dir := t.TempDir() + "/with a space"
	s, err := apiserver.Start(apiserver.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, config).Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestServer_refusesOccupiedPort(t *testing.T) {
	s := start(t, apiserver.Options{})
	port := clientOf(t, s.RESTConfig()).RESTClient().Get().URL().Port()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := apiserver.Start(apiserver.Options{Port: number}); err == nil {
		t.Error("want an error", again.Stop())
	}
}

// TestServer_refuses checks that a request needs the token and the address of the server, and comes from no proxy.
func TestServer_refuses(t *testing.T) {
	s := start(t, apiserver.Options{})
	for name, change := range map[string]func(*rest.Config, *http.Request){
		"without a token":   func(c *rest.Config, _ *http.Request) { c.BearerToken = "" },
		"another token":     func(c *rest.Config, _ *http.Request) { c.BearerToken += "x" },
		"another host name": func(_ *rest.Config, r *http.Request) { r.Host = "attacker.example.com" },
		"another host name with the port": func(_ *rest.Config, r *http.Request) {
			r.Host = "attacker.example.com:" + r.URL.Port()
		},
		"an address that is not the loopback address": func(_ *rest.Config, r *http.Request) {
			r.Host = "10.1.2.3:" + r.URL.Port()
		},
		"through a proxy": func(_ *rest.Config, r *http.Request) { r.Header.Set("X-Forwarded-For", "10.1.2.3") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/api/v1/secrets", "/version", "/healthz"} {
				config := s.RESTConfig()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				change(config, request)
				c, err := rest.HTTPClientFor(config)
				if err != nil {
					t.Fatal(err)
				}
				response, err := c.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: status %s, want 401", path, response.Status)
				}
			}
		})
	}
}

func TestServer_collectsGarbage(t *testing.T) {
	c := clientOf(t, start(t, apiserver.Options{}).RESTConfig()).CoreV1()
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := c.Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the default service account", func(ctx context.Context) (bool, error) {
		_, err := c.ServiceAccounts("shop").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	owner, err := c.ConfigMaps("shop").Create(ctx, configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := configMap("child")
	child.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
	}
	other := configMap("other")
	for _, obj := range []*corev1.ConfigMap{child, other} {
		if _, err := c.ConfigMaps("shop").Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ConfigMaps("shop").Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child is collected", func(ctx context.Context) (bool, error) {
		_, err := c.ConfigMaps("shop").Get(ctx, "child", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if _, err := c.ConfigMaps("shop").Get(ctx, "other", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := c.Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is deleted", func(ctx context.Context) (bool, error) {
		_, err := c.Namespaces().Get(ctx, "shop", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestServer_watch(t *testing.T) {
	c := clientOf(t, start(t, apiserver.Options{DisableControllers: true}).RESTConfig()).CoreV1().ConfigMaps("default")
	ctx := t.Context()
	seconds := int64(1)
	events, err := c.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	created, err := c.Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-events.ResultChan(); event.Type != watch.Added || event.Object.(*corev1.ConfigMap).UID != created.UID {
		t.Errorf("event = %v, want the creation", event)
	}
	for event := range events.ResultChan() { // until the timeout
		t.Errorf("unexpected event %v", event)
	}
}

// TestServer_forgets checks that versions that are too old expire.
func TestServer_forgets(t *testing.T) {
	c := clientOf(t, start(t, apiserver.Options{History: 20}).RESTConfig()).CoreV1().ConfigMaps("default")
	ctx := t.Context()
	first, err := c.Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj := first.DeepCopy()
	obj.ResourceVersion = ""
	for i := range 100 {
		obj.Labels = map[string]string{"n": string(rune('a' + i%2))}
		if _, err := c.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	event := <-events.ResultChan()
	if status, ok := event.Object.(*metav1.Status); event.Type != watch.Error || !ok || status.Code != http.StatusGone {
		t.Errorf("event = %v, want the status 410", event)
	}
	exact := metav1.ListOptions{
		ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	if _, err := c.List(ctx, exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("list of an old version: %v, want that it has expired", err)
	}
}

func create(t *testing.T, c corev1client.ConfigMapInterface, name string) {
	t.Helper()
	if _, err := c.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// linesOf returns the lines that are read. The channel is closed at the end.
func linesOf(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}
