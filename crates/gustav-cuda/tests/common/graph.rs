//! An execution captured in a CUDA graph: capturing it fails where it synchronises, and the graph
//! tells what it allocates.

use cudarc::driver::sys;
use gustav_cuda::Stream;

/// What a closure queued on a stream.
pub struct Graph {
    raw: sys::CUgraph,
    executable: sys::CUgraphExec,
}

impl Graph {
    /// Captures what `execute` queues on `stream`.
    pub fn capture(stream: &Stream, execute: impl FnOnce()) -> Self {
        let on: sys::CUstream = stream.handle().cast();
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let (mut raw, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is alive, and the graph is made by the call before.
        unsafe {
            sys::cuStreamBeginCapture_v2(on, mode).result().expect("capturing");
            execute();
            sys::cuStreamEndCapture(on, &mut raw).result().expect("a graph");
            sys::cuGraphInstantiateWithFlags(&mut executable, raw, 0).result().expect("a graph");
        }
        Graph { raw, executable }
    }

    /// Whether memory is allocated or freed on the way.
    pub fn allocates(&self) -> bool {
        use sys::CUgraphNodeType_enum::{
            CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE,
        };
        let kinds = self.kinds();
        assert!(!kinds.is_empty(), "nothing was captured");
        kinds
            .iter()
            .any(|kind| [CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE].contains(kind))
    }

    /// Kernels.
    #[allow(dead_code, reason = "not all tests that capture count them")]
    pub fn kernels(&self) -> usize {
        let kernel = sys::CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_KERNEL;
        self.kinds().into_iter().filter(|kind| *kind == kernel).count()
    }

    fn kinds(&self) -> Vec<sys::CUgraphNodeType> {
        let mut count = 0;
        // SAFETY: without memory for nodes, their number is written.
        let counted = unsafe { sys::cuGraphGetNodes(self.raw, std::ptr::null_mut(), &mut count) };
        counted.result().expect("the number of nodes");
        let mut nodes = vec![std::ptr::null_mut(); count];
        // SAFETY: the array has that many nodes.
        let listed = unsafe { sys::cuGraphGetNodes(self.raw, nodes.as_mut_ptr(), &mut count) };
        listed.result().expect("the nodes");
        let kind = |node| {
            let mut kind = sys::CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_EMPTY;
            // SAFETY: the node is one of a graph that is alive.
            unsafe { sys::cuGraphNodeGetType(node, &mut kind) }.result().expect("a type");
            kind
        };
        nodes.into_iter().map(kind).collect()
    }

    /// Runs it on `stream` and waits.
    ///
    /// # Safety
    /// The operands that were captured are alive.
    pub unsafe fn launch(&self, stream: &Stream) {
        // SAFETY: the graph is alive, and so are its operands by the caller's promise.
        unsafe { sys::cuGraphLaunch(self.executable, stream.handle().cast()) }
            .result()
            .expect("a launch");
        stream.synchronize().expect("the stream");
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `capture`, destroyed once; nothing runs any more, as launches wait.
        let destroyed =
            unsafe { (sys::cuGraphExecDestroy(self.executable), sys::cuGraphDestroy(self.raw)) };
        assert!(destroyed.0.result().is_ok() && destroyed.1.result().is_ok(), "destroyed");
    }
}
