// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// atOnce limits requests that must not wait for a time-out of a network.
const atOnce = 5 * time.Second

// runPod creates a pod and waits until it runs.
func (p *process) runPod(t *testing.T, namespace string, annotations map[string]string) {
	t.Helper()
	pods := p.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Image: "app"}, {Name: "proxy", Image: "proxy"},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "pod runs", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = errors.New(string(pod.Status.Phase))
		}
		return err
	})
}

func TestLogsAreThoseOfTheAnnotation(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.runPod(t, namespace, map[string]string{"trueup.dev/pod-logs": "one\ntwo", "logs.trueup.dev/proxy": "GET /"})
	pods := p.client.CoreV1().Pods(namespace)
	last := int64(1)
	for _, test := range []struct {
		options corev1.PodLogOptions
		want    string
	}{
		{corev1.PodLogOptions{Container: "app"}, "one\ntwo\n"},
		{corev1.PodLogOptions{Container: "app", TailLines: &last}, "two\n"},
		{corev1.PodLogOptions{Container: "app", InsecureSkipTLSVerifyBackend: true}, "one\ntwo\n"},
		{corev1.PodLogOptions{Container: "proxy"}, "GET /\n"},
	} {
		got, err := pods.GetLogs("web", &test.options).DoRaw(t.Context())
		if err != nil || string(got) != test.want {
			t.Errorf("log with %+v = %q, %v, want %q", test.options, got, err, test.want)
		}
	}
	err := answer(t.Context(), pods.GetLogs("web", &corev1.PodLogOptions{Container: "app", Previous: true}))
	if err == nil || !strings.Contains(err.Error(), `previous terminated container "app" in pod "web" not found`) {
		t.Errorf("previous log: %v, want that it is not found", err)
	}
}

func TestFollowedLogGrowsAndEndsWithThePod(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.runPod(t, namespace, map[string]string{"trueup.dev/pod-logs": "one"})
	pods := p.client.CoreV1().Pods(namespace)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	stream, err := pods.GetLogs("web", &corev1.PodLogOptions{Container: "app", Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	if !lines.Scan() || lines.Text() != "one" {
		t.Fatalf("first line = %q, %v, want one", lines.Text(), lines.Err())
	}
	patch := []byte(`{"metadata":{"annotations":{"trueup.dev/pod-logs":"one\ntwo"}}}`)
	if _, err := pods.Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "two" {
		t.Fatalf("second line = %q, %v, want two", lines.Text(), lines.Err())
	}
	if err := pods.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the deletion: line %q, %v, want the end", lines.Text(), lines.Err())
	}
}

// Requests that a kubelet or a pod would serve fail at once and say why. Nothing is contacted.
func TestWhatNeedsMachinesIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.runPod(t, namespace, nil)
	const foreign = "node-elsewhere"
	nodes := p.client.CoreV1().Nodes()
	foreignNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: foreign}}
	if _, err := nodes.Create(t.Context(), foreignNode, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer nodes.Delete(context.WithoutCancel(t.Context()), foreign, metav1.DeleteOptions{})
	address := []byte(`{"status":{"addresses":[{"type":"InternalIP","address":"10.9.8.7"}]}}`)
	if _, err := nodes.PatchStatus(t.Context(), foreign, address); err != nil {
		t.Fatal(err)
	}
	get := func(path string) func(context.Context) error {
		return func(ctx context.Context) error {
			return answer(ctx, p.client.CoreV1().RESTClient().Get().AbsPath("/api/v1"+path))
		}
	}
	web := "/namespaces/" + namespace + "/pods/web"
	const simulated = "pods are simulated"
	for name, test := range map[string]struct {
		request func(context.Context) error
		want    string
	}{
		"exec":               {p.stream(namespace, "exec", true), simulated},
		"exec by SPDY":       {p.stream(namespace, "exec", false), simulated},
		"attach":             {p.stream(namespace, "attach", true), simulated},
		"port-forward":       {p.forward(namespace), simulated},
		"proxy of a pod":     {get(web + ":80/proxy/"), simulated},
		"proxy of a node":    {get("/nodes/trueup/proxy/metrics"), "the node is simulated"},
		"another node":       {get("/nodes/" + foreign + "/proxy/metrics"), "the node is simulated"},
		"port of a node":     {get("/nodes/trueup:9100/proxy/"), "connects to loopback addresses only"},
		"port of another":    {get("/nodes/" + foreign + ":9100/proxy/"), "connects to loopback addresses only"},
		"proxy of a service": {get("/namespaces/default/services/kubernetes:https/proxy/"), "no endpoints available"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			begin := time.Now()
			err := test.request(ctx)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
			if took := time.Since(begin); took > atOnce {
				t.Errorf("answered after %s, want at most %s", took, atOnce)
			}
		})
	}
}

// answer returns the error of a request with the body of the response, which clients print.
func answer(ctx context.Context, request *rest.Request) error {
	var status metav1.Status
	body, err := request.Do(ctx).Raw()
	if err != nil && json.Unmarshal(body, &status) == nil {
		err = fmt.Errorf("%s: %w", status.Message, err)
	}
	return err
}

// stream returns a request to execute or attach.
func (p *process) stream(namespace, subresource string, websocket bool) func(context.Context) error {
	return func(ctx context.Context) error {
		request := p.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("web").
			SubResource(subresource)
		if subresource == "exec" {
			request.VersionedParams(
				&corev1.PodExecOptions{Container: "app", Command: []string{"ls"}, Stdout: true}, scheme.ParameterCodec,
			)
		} else {
			request.VersionedParams(&corev1.PodAttachOptions{Container: "app", Stdout: true}, scheme.ParameterCodec)
		}
		var executor remotecommand.Executor
		var err error
		if websocket {
			executor, err = remotecommand.NewWebSocketExecutor(p.config, http.MethodGet, request.URL().String())
		} else {
			executor, err = remotecommand.NewSPDYExecutor(p.config, http.MethodPost, request.URL())
		}
		if err != nil {
			return err
		}
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &bytes.Buffer{}})
	}
}

// forward returns a request to forward a port.
func (p *process) forward(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		transport, upgrader, err := spdy.RoundTripperFor(p.config)
		if err != nil {
			return err
		}
		target := p.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("web").
			SubResource("portforward").URL()
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
		forwarder, err := portforward.New(
			dialer, []string{"0:80"}, ctx.Done(), make(chan struct{}), &bytes.Buffer{}, &bytes.Buffer{},
		)
		if err != nil {
			return err
		}
		return forwarder.ForwardPorts()
	}
}
