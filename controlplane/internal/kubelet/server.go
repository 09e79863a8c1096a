// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	headerTimeout = 10 * time.Second

	notExecuted = "pods are simulated: nothing is executed here, %s is not available"
)

// Server answers for the kubelets of all nodes.
type Server struct {
	client       kubernetes.Interface
	listener     *Listener
	certificates *certificates
}

// New returns a server that reads pods with client. Function issue returns a serving certificate for the address or
// name of a node.
func New(client kubernetes.Interface, listener *Listener, issue func(host string) (tls.Certificate, error)) *Server {
	return &Server{
		client: client, listener: listener,
		certificates: &certificates{issue: issue, byHost: map[string]*tls.Certificate{}},
	}
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificates.get},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	_ = server.ServeTLS(s.listener, "", "") // it ends with http.ErrServerClosed
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveLogs)
	for path, what := range map[string]string{
		"/exec/": "exec", "/run/": "exec", "/attach/": "attach", "/portForward/": "port-forward",
		"/cp/": "cp",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusNotImplemented, fmt.Sprintf(notExecuted, what))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotImplemented, "the node is simulated: its kubelet does not serve "+r.URL.Path)
	})
	return mux
}

// fail writes a Status, whose message clients print.
func fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: message,
		Reason: metav1.StatusReason(http.StatusText(code)),
	})
}

// serveLogs writes the log of a container.
func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	options, err := parseLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest) // as a kubelet does, not a Status
		return
	}
	name, container := r.PathValue("pod"), r.PathValue("container")
	pods := s.client.CoreV1().Pods(r.PathValue("namespace"))
	pod, err := pods.Get(r.Context(), name, metav1.GetOptions{})
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		http.Error(w, status.Status().Message, int(status.Status().Code))
		return
	}
	if err == nil {
		err = options.available(pod, container)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	printer := &logPrinter{out: w, options: options, container: container}
	if !printer.print(pod) || !options.follow {
		return
	}
	flush(w)
	changes, err := pods.Watch(r.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return // the log ends, as the log of a kubelet that stops
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		changed, ok := event.Object.(*corev1.Pod)
		if !ok || !printer.print(changed) || ended(changed, container) {
			return
		}
		flush(w)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
