// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"trueup.dev/controlplane/internal/datadir"
	"trueup.dev/controlplane/internal/kubelet"
)

const (
	startTimeout = 5 * time.Minute

	// stopTimeout is how long the components may take to stop. Afterwards files are removed in any case.
	stopTimeout = 3 * time.Second
)

// ErrAlreadyStarted is returned by Start if this process has started a control plane before, even one that has stopped.
var ErrAlreadyStarted = errors.New("this process has started a control plane before, and can start only one")

var started atomic.Bool

// ControlPlane is a running control plane. Its methods may be called concurrently.
type ControlPlane struct {
	options    Options
	data       *datadir.Folder
	work       *datadir.Folder // directory of the socket; the same as data if that is temporary
	log        *componentLog
	listener   net.Listener
	url        string
	keys       *pki
	kubeconfig []byte
	additional string // absolute path of a second kubeconfig, or empty

	etcd          *etcdServer
	stopAPIServer context.CancelFunc
	stopClients   context.CancelFunc
	apiServer     sync.WaitGroup
	clients       sync.WaitGroup

	abortStart context.CancelCauseFunc
	failed     chan error // receives the first failure of a component
	stopOnce   sync.Once
	stopping   chan struct{}
	done       chan struct{}
	filesOnce  sync.Once
	filesErr   error

	mu  sync.Mutex
	err error
}

func newControlPlane(o Options) *ControlPlane {
	return &ControlPlane{options: o, failed: make(chan error, 1), stopping: make(chan struct{}), done: make(chan struct{})}
}

// Start starts a control plane and returns when it is ready: the API server is ready, the namespace "default" exists,
// the controllers have synced, and the node is Ready. If the start fails or ctx ends first, everything is stopped and
// removed, and the error describes the failure. A started control plane does not depend on ctx: call Stop to end it.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c := newControlPlane(o)
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Run starts a control plane, calls ready (if not nil), and stops it when ctx ends or ready returns an error. It
// returns nil after a stop by ctx. It returns an error if the control plane could not start, ready failed, or a
// component failed while running. It returns at most 4 seconds after ctx ends, with the files removed, even if a
// component hangs; the process should then end.
func Run(ctx context.Context, o Options, ready func(*ControlPlane) error) error {
	c := newControlPlane(o)
	result := make(chan error, 1)
	go func() {
		if err := c.start(ctx); err != nil {
			if ctx.Err() != nil {
				err = c.removeFiles() // the caller aborted the start
			}
			result <- err
			return
		}
		if ready != nil {
			if err := ready(c); err != nil {
				result <- errors.Join(err, c.Stop())
				return
			}
		}
		select {
		case <-ctx.Done():
			result <- c.Stop()
		case <-c.done:
			result <- c.Err()
		}
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(stopTimeout + 500*time.Millisecond):
		return c.removeFiles()
	}
}

// URL returns the address of kube-apiserver, for example https://127.0.0.1:41234.
func (c *ControlPlane) URL() string { return c.url }

// Dir returns the data directory.
func (c *ControlPlane) Dir() string { return c.data.Path() }

// Kubeconfig returns the path of the admin's kubeconfig in the data directory.
func (c *ControlPlane) Kubeconfig() string { return c.data.File("kubeconfig") }

// RESTConfig returns a new client configuration for the admin, without client-side throttling.
func (c *ControlPlane) RESTConfig() *rest.Config {
	return restConfig(c.url, c.keys.ca.pem(), c.keys.admin, rest.DefaultKubernetesUserAgent())
}

// Done returns a channel that is closed when the control plane has stopped, by Stop or by a failure.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Err returns the failure that ended the control plane, or nil while it runs and after Stop.
func (c *ControlPlane) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stop stops all components and removes the files that must not be kept. It returns within 4 seconds, and may be called
// again. It returns an error if files could not be removed.
func (c *ControlPlane) Stop() error {
	c.stopOnce.Do(func() {
		close(c.stopping)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			c.stopComponents()
		}()
		select {
		case <-stopped:
		case <-time.After(stopTimeout):
		}
		_ = c.removeFiles()
		close(c.done)
	})
	<-c.done
	return c.removeFiles()
}

// stopComponents stops clients before servers, so that clients do not log lost connections.
func (c *ControlPlane) stopComponents() {
	if c.stopClients != nil {
		c.stopClients()
		c.clients.Wait()
	}
	if c.stopAPIServer != nil {
		c.stopAPIServer()
		c.apiServer.Wait()
	}
	if c.listener != nil {
		_ = c.listener.Close() // kube-apiserver may have closed it
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
}

// removeFiles removes temporary files and releases the locks.
func (c *ControlPlane) removeFiles() error {
	c.filesOnce.Do(func() {
		var errs []error
		if c.additional != "" {
			errs = append(errs, removeKubeconfig(c.additional, c.kubeconfig))
		}
		if c.log != nil {
			c.log.close()
		}
		if c.work != nil && c.work != c.data {
			errs = append(errs, c.work.Release())
		}
		if c.data != nil {
			errs = append(errs, c.data.Release())
		}
		c.filesErr = errors.Join(errs...)
	})
	return c.filesErr
}

func (c *ControlPlane) start(ctx context.Context) (err error) {
	if err := c.options.validate(); err != nil {
		return err
	}
	if !started.CompareAndSwap(false, true) {
		return ErrAlreadyStarted
	}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	ctx, c.abortStart = context.WithCancelCause(ctx)
	defer c.abortStart(nil)
	defer func() {
		if err != nil {
			if logged := c.log.recentErrors(); logged != "" && caller.Err() == nil {
				err = fmt.Errorf("%w%s", err, logged)
			}
			_ = c.Stop()
		}
	}()
	if err := c.claim(ctx); err != nil {
		started.Store(false) // no component has run, so another attempt with other options is possible
		return err
	}
	klog.OsExit = c.fatal
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if err := c.startClients(ctx); err != nil {
		return err
	}
	// The file is written last, so that the API is usable when it appears.
	if c.additional != "" {
		if err := writeKubeconfig(c.additional, c.kubeconfig); err != nil {
			return err
		}
	}
	go c.watch()
	return nil
}

// claim reserves directories, port and file names. Mistakes in the options are reported here, before any component
// runs.
func (c *ControlPlane) claim(ctx context.Context) (err error) {
	o := c.options
	if o.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", o.Kubeconfig, err)
		}
		if err := checkKubeconfigTarget(o.Kubeconfig); err != nil {
			return err
		}
	}
	if c.work, err = datadir.Temporary(); err != nil {
		return err
	}
	c.data = c.work
	if o.Dir != "" {
		if c.data, err = datadir.Open(o.Dir); err != nil {
			return err
		}
	}
	if err := checkSpace(c.data.Path()); err != nil {
		return err
	}
	if err := c.options.prepareAudit(c.data); err != nil {
		return err
	}
	if c.listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", o.Port)); err != nil {
		if opErr, ok := errors.AsType[*os.SyscallError](err); ok {
			err = opErr.Err
		}
		return fmt.Errorf("port %d: %w", o.Port, err)
	}
	c.url = "https://" + c.listener.Addr().String()
	if c.log, err = newComponentLog(c.data.File(logName), o); err != nil {
		return err
	}
	if c.keys, err = newPKI(c.data, serviceIP); err != nil {
		return err
	}
	if c.kubeconfig, err = encodeKubeconfig(c.url, c.keys.ca.pem(), c.keys.admin); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	c.additional = o.Kubeconfig
	return writeKubeconfig(c.Kubeconfig(), c.kubeconfig)
}

// startServers starts etcd and kube-apiserver.
func (c *ControlPlane) startServers(ctx context.Context) error {
	socket := c.work.File("etcd.sock")
	var err error
	if c.etcd, err = startEtcd(ctx, c.data.File("etcd"), socket, c.log, c.options); err != nil {
		return err
	}
	go func() { c.fail(c.etcd.watch()) }()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stopAPIServer = stop
	keeper := newMaintenance(c.etcd, c.data.Path(), c.options)
	c.apiServer.Go(func() { keeper.run(serving) })
	kubelets, err := c.startKubelets(serving)
	if err != nil {
		return err
	}
	run, err := newAPIServer(serving, c.listener, socket, c.keys, keeper.space, kubelets, c.options)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.apiServer.Go(func() {
		if err := run(serving); err != nil {
			c.fail(fmt.Errorf("kube-apiserver: %w", err))
		} else if serving.Err() == nil {
			c.fail(errors.New("kube-apiserver: ended unexpectedly"))
		}
	})
	return nil
}

// startKubelets serves what kube-apiserver forwards to kubelets. It returns the function to connect to them.
func (c *ControlPlane) startKubelets(ctx context.Context) (utilnet.DialFunc, error) {
	client, err := kubernetes.NewForConfig(restConfig(c.url, c.keys.ca.pem(), c.keys.podUser, "trueup-pod-runner"))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	listener := kubelet.NewListener()
	server := kubelet.New(client, listener, c.keys.ca.issueServing)
	c.apiServer.Go(func() { server.Run(ctx) })
	return listener.Dial, nil
}

// fail records the first failure of a component, unless the control plane is being stopped.
func (c *ControlPlane) fail(err error) {
	select {
	case <-c.stopping:
		return
	default:
	}
	select {
	case c.failed <- err:
		c.abortStart(err)
	default:
	}
}

// fatal is called by klog to end the process after a component has logged a fatal error. It must not return.
func (c *ControlPlane) fatal(code int) {
	select {
	case <-c.stopping:
		// kube-apiserver treats a stop during its start as fatal; here the stop was requested.
		runtime.Goexit()
	default:
	}
	if o := c.options.LogOutput; o != nil {
		_, _ = fmt.Fprintf(o, "error: a component ended the process%s\n", c.log.recentErrors())
	}
	_ = c.removeFiles()
	os.Exit(code)
}

// watch stops the control plane when a component fails.
func (c *ControlPlane) watch() {
	select {
	case <-c.stopping:
	case err := <-c.failed:
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		_ = c.Stop()
	}
}
