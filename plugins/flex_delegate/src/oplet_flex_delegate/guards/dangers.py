"""TensorFlow operators that models must not run: they access the outside, can block for ever, or crash the process.

A model of a stranger can carry any operator of TensorFlow, with any attributes. Those that are left alone whatever their attributes say
stand here by name, each group with its reason. The operators that remain were run on hostile attributes and inputs
(`python -m plugins.flex_delegate.tests.sweep`); what ended the process then is refused by a condition, as narrow as its cause.
"""

from __future__ import annotations

__all__ = ["never"]

_FILES = "it reads or writes files"
_WAITS = "it waits for what another thread or process sends, for ever if nobody does"
_OUTSIDE = "it speaks with other processes"
_ENDS = "it ends the process"
_CALLS = "it calls functions, and a .tflite model carries none"
_DATA = "it makes or reads a data set, which has threads, files or functions of its own"
_CODE = "it runs code of the program or of a compiler"
_GRAPH = "it is a part of TensorFlow's graphs and does nothing by itself"
_SESSION = "it needs a session of TensorFlow 1"
_OVERWRITES = "it writes over its input, which other operators may read"
_SPEAKS = "it writes to the program's output"
_TRUSTS = "its kernel trusts its inputs, and ends the process on wrong ones"

_NAMES = {
    _FILES: """
        FileSystemSetConfiguration GenerateVocabRemapping ImmutableConst InitializeTableFromTextFile InitializeTableFromTextFileV2
        LoadAndRemapMatrix MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice RestoreV2 Save SaveSlices SaveV2 WriteFile
        CreateSummaryDbWriter CreateSummaryFileWriter CloseSummaryWriter FlushSummaryWriter ImportEvent RecordInput SummaryWriter
        WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary WriteRawProtoSummary WriteScalarSummary WriteSummary
        DistributedSave CalibrationStatisticsSaver DumpTensor LMDBReader FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader
        IdentityReaderV2 ReaderNumRecordsProduced ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2
        ReaderRead ReaderReadUpTo ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 ReaderRestoreState ReaderRestoreStateV2
        ReaderSerializeState ReaderSerializeStateV2 TFRecordReader TFRecordReaderV2 TextLineReader TextLineReaderV2 WholeFileReader
        WholeFileReaderV2 DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugNanCount DebugNumericSummary DebugNumericSummaryV2
        DecodeProtoV2 EncodeProto FixedUnigramCandidateSampler
        Skipgram
        """,
    _WAITS: """
        Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize BarrierTakeMany Batch Unbatch UnbatchGrad
        FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue PriorityQueueV2 RandomShuffleQueue
        RandomShuffleQueueV2 QueueClose QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2
        QueueDequeueV2 QueueEnqueue QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2
        MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey OrderedMapClear OrderedMapIncompleteSize
        OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize Unstage
        AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep AccumulatorTakeGradient ConditionalAccumulator
        ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep
        ResourceAccumulatorTakeGradient ResourceConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient
        SparseConditionalAccumulator MutexV2 MutexLock ConsumeMutexLock SleepOp SleepIdentityOp GetDeadline
        """,
    _OUTSIDE: """
        CollectiveAllToAllV2 CollectiveAllToAllV3 CollectiveAssignGroupV2 CollectiveBcastRecv CollectiveBcastRecvV2 CollectiveBcastSend
        CollectiveBcastSendV2 CollectiveGather CollectiveGatherV2 CollectiveInitializeCommunicator CollectiveReduce
        CollectiveReduceScatterV2 CollectiveReduceV2 CollectiveReduceV3 DeleteRpcFutureResource Recv RpcCall RpcCheckStatus RpcClient
        RpcGetValue RpcServer RpcServerRegister RpcServerStart Send RegisterDataset RegisterDatasetV2 SyncDevice
        """,
    _ENDS: "Abort",
    _CALLS: """
        BatchFunction Case For If MapDefun PartitionedCall ReduceDataset RemoteCall StatefulPartitionedCall StatelessCase StatelessIf
        StatelessWhile SymbolicGradient While
        """,
    _DATA: """
        DatasetCardinality DatasetFingerprint DatasetFromGraph DatasetToGraph DatasetToGraphV2 DatasetToSingleElement DatasetToTFRecord
        GetElementAtIndex GetOptions InitializeTableFromDataset UnwrapDatasetVariant WrapDatasetVariant OneShotIterator MakeIterator
        AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMemoryCache AnonymousMultiDeviceIterator
        AnonymousMultiDeviceIteratorV3 AnonymousRandomSeedGenerator AnonymousSeedGenerator DeleteIterator DeleteMemoryCache
        DeleteMultiDeviceIterator DeleteRandomSeedGenerator DeleteSeedGenerator DeserializeIterator DummyIterationCounter DummyMemoryCache
        DummySeedGenerator Iterator IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetDevice IteratorGetModelProto
        IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 MultiDeviceIterator
        MultiDeviceIteratorFromStringHandle MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorInit MultiDeviceIteratorToStringHandle
        SerializeIterator SnapshotDatasetReader SnapshotNestedDatasetReader StatsAggregatorHandle StatsAggregatorHandleV2
        StatsAggregatorSetSummaryWriter StatsAggregatorSummary ThreadPoolHandle CompressElement UncompressElement ComputeBatchSize WindowOp
        """,
    _CODE: "EagerPyFunc PyFunc PyFuncStateless GeneratorDataset CustomAggregator",
    _GRAPH: """
        ControlTrigger Enter Exit FakeParam LoopCond Merge NextIteration Placeholder PlaceholderV2 PlaceholderWithDefault RefEnter RefExit
        RefIdentity RefMerge RefNextIteration RefSelect RefSwitch Switch ParallelConcat DeviceIndex DebugGradientRefIdentity
        """,
    _SESSION: """
        DeleteSessionTensor GetSessionHandle GetSessionHandleV2 GetSessionTensor TemporaryVariable DestroyTemporaryVariable
        TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3
        TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3
        TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3 TensorArrayScatter
        TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit TensorArraySplitV2
        TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3
        Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2
        """,
    _OVERWRITES: "DeepCopy InplaceAdd InplaceSub InplaceUpdate",
    _SPEAKS: "Print PrintV2",
    _TRUSTS: """
        BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 GRUBlockCell GRUBlockCellGrad LSTMBlockCell LSTMBlockCellGrad
        ParseSingleSequenceExample RaggedTensorToVariantGradient StatefulRandomBinomial
        """,
}  # fmt: skip

_REASONS = {name: reason for reason, names in _NAMES.items() for name in names.split()}


def never(op: str) -> str:
    """Return why an operator is never run, whatever its attributes are; "" if it may run."""
    if op.endswith(("Dataset", "DatasetV2", "DatasetV3", "DatasetV4")):
        return _DATA
    if op.startswith(("Xla", "TPU")):
        return _CODE
    return _REASONS.get(op, "")
