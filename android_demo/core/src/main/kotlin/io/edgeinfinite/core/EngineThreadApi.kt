package io.edgeinfinite.core

/**
 * Computes, or reads and writes files, on the thread that calls it.
 *
 * [Model] and [Conversation] call these on the engine's own thread, and suspend meanwhile. Who
 * writes an engine, or needs a [Session] itself, opts in and calls them on an [EngineDispatcher].
 */
@RequiresOptIn("It blocks its thread: use Model and Conversation, or call it on an EngineDispatcher")
@Retention(AnnotationRetention.BINARY)
@Target(AnnotationTarget.CLASS, AnnotationTarget.CONSTRUCTOR, AnnotationTarget.FUNCTION, AnnotationTarget.PROPERTY)
public annotation class EngineThreadApi
